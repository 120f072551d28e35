package etcdlock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
)

// A record is the value of a claim in etcd.
type record struct {
	ID     string        `json:"id"`
	Weight int64         `json:"weight"`
	Limit  int64         `json:"limit"`
	TTL    time.Duration `json:"ttl"`
	Span   int           `json:"span,omitempty"`
	Phase  int64         `json:"phase,omitempty"` // revision of the reader that it joined
	Left   bool          `json:"left,omitempty"`  // its last renewal was with Leave
	Client string        `json:"client"`          // whom to tell that it was broken
	Since  int64         `json:"since"`           // microseconds of the client's clock
	Owner  string        `json:"owner,omitempty"`
	Note   string        `json:"note,omitempty"`
}

func (r record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // It has numbers and texts only.
	}
	return string(text)
}

// A place is a claim as etcd has it.
type place struct {
	record
	name  string
	rev   int64 // in which it was made
	mod   int64 // in which it was last written
	lease clientv3.LeaseID
}

// A line is the claims on a key in the order in which they came. What it says of
// one of them never depends on those behind it, and etcd gives later ones larger
// revisions. So whoever holds goes on holding until it leaves, and every client
// that reads the line comes to the same result: nobody has to write down who
// holds.
type line []place

// readLine reads the claims on a key.
func readLine(kvs []*mvccpb.KeyValue) (line, error) {
	l := make(line, 0, len(kvs))
	for _, kv := range kvs {
		p, err := readPlace(kv)
		if err != nil {
			return nil, err
		}
		l = append(l, p)
	}
	slices.SortFunc(l, func(a, b place) int { return cmp.Compare(a.rev, b.rev) })
	return l, nil
}

func readPlace(kv *mvccpb.KeyValue) (place, error) {
	p := place{name: string(kv.Key), rev: kv.CreateRevision, mod: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease)}
	if err := json.Unmarshal(kv.Value, &p.record); err != nil {
		return place{}, fmt.Errorf("key %q of etcd is none of ours, give Holdfast a prefix of its own: %w", p.name, err)
	}
	return p, nil
}

// fit is how many of the first fit beside each other.
func (l line) fit() int {
	var weight int64
	for i := range l {
		if weight > l[i].Limit-l[i].Weight {
			return i
		}
		weight += l[i].Weight
	}
	return len(l)
}

// held is how many of the first hold the key: those that fit, up to a reader that
// has not the token of those before it yet. That happens when a writer between
// them gives up. If it held with the larger token that it has, and left, the next
// to join the others would have the smaller one.
func (l line) held() int {
	n := l.fit()
	if i := l[:n].discord(); i >= 0 {
		return i
	}
	return n
}

// discord is the first reader that has another token than a reader before it, -1
// if there is none.
func (l line) discord() int {
	last := -1
	for i := range l {
		if !l[i].shared() {
			continue
		}
		if last >= 0 && l[i].phase() != l[last].phase() {
			return i
		}
		last = i
	}
	return -1
}

// fits reports whether a claim at the end of the line fits beside all before it.
func (l line) fits(weight, limit int64) bool {
	for i := range l {
		weight += l[i].Weight
	}
	return weight <= limit && l.fit() == len(l)
}

// reader is the last reader, -1 if there is none.
func (l line) reader() int {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].shared() {
			return i
		}
	}
	return -1
}

// without removes those who have left, each in a revision, and reports whether any
// was there.
func (l *line) without(left map[string]int64) bool {
	before := len(*l)
	*l = slices.DeleteFunc(*l, func(p place) bool { return p.rev < left[p.name] })
	return len(*l) < before
}

func (l line) index(id string) int {
	return slices.IndexFunc(l, func(p place) bool { return p.ID == id })
}

// shared reports whether it is a reader.
func (p *place) shared() bool { return p.Limit == driver.MaxWeight && p.Weight < driver.MaxWeight }

// stays is the condition that it is still there.
func (p *place) stays() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(p.name), "=", p.rev)
}

// phase is the revision from which its token is: that in which it was made, or of
// the reader that it has joined.
func (p *place) phase() int64 {
	if p.Phase != 0 {
		return p.Phase
	}
	return p.rev
}

// room is by how many bits a revision is shifted to make place for the tokens of
// a span. Tokens stay below 2^53 for 2^45 writes.
const room = 8

func (p *place) token() uint64 { return uint64(p.phase()) << room }

// holder is what people may know of it.
func (p *place) holder() driver.Holder {
	return driver.Holder{
		ID: driver.PublicID(p.ID), Owner: p.Owner, Note: p.Note, Fence: p.token(),
		Since: time.UnixMicro(p.Since), Weight: p.Weight, Limit: p.Limit,
	}
}

// refusal tells of the first in the way. How much its lease has left would have
// to be asked; it is no more than the TTL.
func (l line) refusal() driver.Grant {
	if len(l) == 0 {
		return driver.Grant{}
	}
	return driver.Grant{Retry: l[0].TTL, Holder: l[0].holder()}
}
