package etcdlock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// format is the version of a record. A later format may change every field but format, and
// how claims relate: a queue with a claim of a later format cannot be read.
const format = 1

// A record is the value of a claim in etcd.
type record struct {
	Format int64         `json:"format"`
	ID     string        `json:"id"`
	Weight int64         `json:"weight"`
	Limit  int64         `json:"limit"`
	TTL    time.Duration `json:"ttl"`
	Span   int           `json:"span,omitempty"`
	Phase  int64         `json:"phase,omitempty"` // revision of the reader whose phase this reader joined
	Left   bool          `json:"left,omitempty"`  // the last renewal was with Leave
	Client string        `json:"client"`          // the client to notify of a break
	Since  int64         `json:"since"`           // microseconds of the client's clock
	Owner  string        `json:"owner,omitempty"`
	Note   string        `json:"note,omitempty"`
}

func (r record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // A record contains only numbers and strings.
	}
	return string(text)
}

// A place is a claim as stored in etcd.
type place struct {
	record
	name  string
	rev   int64 // create revision
	mod   int64 // revision of the last write
	lease clientv3.LeaseID
}

// A line is the queue of claims on a key, in FIFO order. The state of a claim never
// depends on the claims behind it, and etcd gives later claims larger revisions. A
// holder therefore keeps holding until it leaves. Every client that reads the queue
// computes the same result, so no client has to write the holder down.
type line []place

// readLine reads the claims on a key. If some claims are of a newer release, the error says
// so, and the queue has the other claims.
func readLine(key string, kvs []*mvccpb.KeyValue) (l line, unread error) {
	l = make(line, 0, len(kvs))
	for _, kv := range kvs {
		p, err := readPlace(key, kv)
		switch {
		case errors.As(err, new(*newer.Error)):
			unread = err
		case err != nil:
			return nil, err
		default:
			l = append(l, p)
		}
	}
	slices.SortFunc(l, func(a, b place) int { return cmp.Compare(a.rev, b.rev) })
	return l, unread
}

func readPlace(key string, kv *mvccpb.KeyValue) (place, error) {
	p := place{name: string(kv.Key), rev: kv.CreateRevision, mod: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease)}
	err := json.Unmarshal(kv.Value, &p.record)
	if p.Format > format { // Other fields may have other types.
		return place{}, newer.Check(key, p.Format, format, newer.Passes)
	}
	if err != nil {
		return place{}, fmt.Errorf("key %q of etcd is none of ours, give Holdfast a prefix of its own: %w", p.name, err)
	}
	return p, newer.Check(key, p.Format, format, newer.Passes)
}

// fit returns how many claims at the front fit beside each other.
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

// held returns how many claims at the front hold the key. The claims that fit hold, up
// to a reader without the token of the readers ahead. The tokens differ if a writer
// between two readers gives up. If the later reader held with its larger token and
// left, the next reader to join would have the smaller token.
func (l line) held() int {
	n := l.fit()
	if i := l[:n].discord(); i >= 0 {
		return i
	}
	return n
}

// discord returns the index of the first reader with a token that differs from an
// earlier reader's, -1 if there is none.
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

// fits reports whether a claim at the end of the queue fits beside all claims ahead.
func (l line) fits(weight, limit int64) bool {
	for i := range l {
		weight += l[i].Weight
	}
	return weight <= limit && l.fit() == len(l)
}

// reader returns the index of the last reader, -1 if there is none.
func (l line) reader() int {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].shared() {
			return i
		}
	}
	return -1
}

// without removes the claims in left, which has the revision of each departure by name. It
// reports whether the queue contained such a claim.
func (l *line) without(left map[string]int64) bool {
	before := len(*l)
	*l = slices.DeleteFunc(*l, func(p place) bool { return p.rev < left[p.name] })
	return len(*l) < before
}

func (l line) index(id string) int {
	return slices.IndexFunc(l, func(p place) bool { return p.ID == id })
}

// shared reports whether the claim is a reader.
func (p *place) shared() bool { return p.Limit == driver.MaxWeight && p.Weight < driver.MaxWeight }

// stays is the condition that the claim is still in etcd.
func (p *place) stays() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(p.name), "=", p.rev)
}

// phase returns the revision behind the token: the claim's create revision, or the
// revision of the reader whose phase was joined.
func (p *place) phase() int64 {
	if p.Phase != 0 {
		return p.Phase
	}
	return p.rev
}

// room is the number of bits by which a revision is shifted, to leave room for the
// tokens of a span. Tokens stay below 2^53 for 2^45 writes.
const room = 8

func (p *place) token() uint64 { return uint64(p.phase()) << room }

// countable fails for a revision without tokens below 2^53, such as the revision of a
// snapshot restored with a large --bump-revision.
func countable(rev int64) error {
	if rev >= 1<<(53-room) {
		return fmt.Errorf("%w: etcd is at revision %d, which leaves no fencing tokens below 2^53 (want a revision below 2^%d)", driver.ErrInvalid, rev, 53-room)
	}
	return nil
}

// holder returns the public facts of a claim.
func (p *place) holder() driver.Holder {
	return driver.Holder{
		ID: driver.PublicID(p.ID), Owner: p.Owner, Note: p.Note, Fence: p.token(),
		Since: time.UnixMicro(p.Since), Weight: p.Weight, Limit: p.Limit,
	}
}

// refusal describes the first claim in the way. Retry is the TTL, an upper bound: the
// remaining time of the lease would need a further request.
func (l line) refusal() driver.Grant {
	if len(l) == 0 {
		return driver.Grant{}
	}
	return driver.Grant{Left: l[0].TTL, Holder: l[0].holder()}
}
