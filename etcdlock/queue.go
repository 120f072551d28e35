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
	Phase  int64         `json:"phase,omitempty"`  // revision of the reader whose phase this reader joined
	Closed bool          `json:"closed,omitempty"` // a slot beside this reader has ended the phase
	Left   bool          `json:"left,omitempty"`   // the last renewal was with Leave
	Client string        `json:"client"`           // the client to notify of a break
	Since  int64         `json:"since"`            // microseconds of the client's clock
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

// An entry is a claim as stored in etcd.
type entry struct {
	record
	name    string
	rev     int64 // create revision; 0 before the claim is created
	mod     int64 // revision of the last write
	leaseID clientv3.LeaseID
}

// A queue is the claims on a key, in FIFO order. The state of a claim never
// depends on the claims behind it, and etcd gives later claims larger revisions. A
// holder therefore keeps holding until it leaves. Every client that reads the queue
// computes the same result, so no client has to write the holder down.
type queue []entry

// readQueue reads the claims on a key. If some claims are of a newer release, the error says
// so, and the queue has the other claims.
func readQueue(key string, kvs []*mvccpb.KeyValue) (q queue, unread error) {
	q = make(queue, 0, len(kvs))
	for _, kv := range kvs {
		e, err := readEntry(key, kv)
		switch {
		case errors.As(err, new(*newer.Error)):
			unread = err
		case err != nil:
			return nil, err
		default:
			q = append(q, e)
		}
	}
	slices.SortFunc(q, func(a, b entry) int { return cmp.Compare(a.rev, b.rev) })
	return q, unread
}

func readEntry(key string, kv *mvccpb.KeyValue) (entry, error) {
	e := entry{name: string(kv.Key), rev: kv.CreateRevision, mod: kv.ModRevision, leaseID: clientv3.LeaseID(kv.Lease)}
	err := json.Unmarshal(kv.Value, &e.record)
	if e.Format > format { // Other fields may have other types.
		return entry{}, newer.Check(key, e.Format, format, newer.Passes)
	}
	if err != nil {
		return entry{}, fmt.Errorf("key %q of etcd is none of ours, give Holdfast a prefix of its own: %w", e.name, err)
	}
	return e, newer.Check(key, e.Format, format, newer.Passes)
}

// fit returns how many claims at the front fit beside each other.
func (q queue) fit() int {
	var weight int64
	for i := range q {
		if weight > q[i].Limit-q[i].Weight {
			return i
		}
		weight += q[i].Weight
	}
	return len(q)
}

// held returns how many claims at the front hold the key. The claims that fit hold, up
// to a claim that needs a change of a reader's record first.
func (q queue) held() int {
	n := q.fit()
	if i := q[:n].mismatch(); i >= 0 {
		return i
	}
	return n
}

// mismatch returns the index of the first claim that needs a change of a reader's record
// before the claim may hold, -1 if there is none:
//
//   - A reader without the token of the readers ahead. The tokens differ if a writer
//     between two readers gives up. If the later reader held with its larger token and
//     left, the next reader to join would have the smaller token.
//   - A slot, or the upgrade of a reader, behind readers whose phase is open. The next
//     reader to join would have a smaller token than the slot.
func (q queue) mismatch() int {
	last := -1 // reader of an open phase
	for i := range q {
		if last >= 0 && (!q[i].shared() || q[i].phase() != q[last].phase()) {
			return i
		}
		if q[i].shared() && !q[i].Closed {
			last = i
		}
	}
	return -1
}

// fits reports whether a claim at the end of the queue fits beside all claims ahead.
func (q queue) fits(weight, limit int64) bool {
	for i := range q {
		weight += q[i].Weight
	}
	return weight <= limit && q.fit() == len(q)
}

// reader returns the index of the last reader, -1 if there is none.
func (q queue) reader() int {
	for i := len(q) - 1; i >= 0; i-- {
		if q[i].shared() {
			return i
		}
	}
	return -1
}

// without removes the claims in left, which has the revision of each departure by name. It
// reports whether the queue contained such a claim.
func (q *queue) without(left map[string]int64) bool {
	before := len(*q)
	*q = slices.DeleteFunc(*q, func(e entry) bool { return e.rev < left[e.name] })
	return len(*q) < before
}

func (q queue) index(id string) int {
	return slices.IndexFunc(q, func(e entry) bool { return e.ID == id })
}

// put returns the operation that writes the claim.
func (e *entry) put() clientv3.Op {
	return clientv3.OpPut(e.name, e.String(), clientv3.WithLease(e.leaseID))
}

// alive is how long the claim keeps its place in the queue without a request.
func (e *entry) alive() time.Duration { return driver.Claim{TTL: e.TTL}.Alive() }

// shared reports whether the claim is a reader.
func (e *entry) shared() bool { return driver.Claim{Weight: e.Weight, Limit: e.Limit}.Shared() }

// unreadEntry returns a claim of which only the name and the create revision are known. It counts
// as a claim on the whole key.
func unreadEntry(name string, rev int64) entry {
	return entry{name: name, rev: rev, record: record{Weight: driver.MaxWeight, Limit: driver.MaxWeight}}
}

// unread reports whether the record of the claim was not read.
func (e *entry) unread() bool { return e.Format == 0 }

// alone reports whether the claim holds only as the first claim.
func (e *entry) alone() bool { return e.Weight == e.Limit }

// stays is the condition that the claim is still in etcd.
func (e *entry) stays() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(e.name), "=", e.rev)
}

// unwritten is the condition that the claim has not been written since the read.
func (e *entry) unwritten() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(e.name), "=", e.mod)
}

// first is the condition that no claim in the folder is ahead of the claim.
func (e *entry) first(folder string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(folder), ">", e.rev-1).WithPrefix()
}

// phase returns the revision behind the token: the claim's create revision, or the
// revision of the reader whose phase was joined.
func (e *entry) phase() int64 {
	if e.Phase != 0 {
		return e.Phase
	}
	return e.rev
}

// spanBits is the number of bits by which a revision is shifted, to leave room for the
// tokens of a span. Tokens stay below 2^53 for 2^45 writes.
const spanBits = 8

func (e *entry) token() uint64 { return uint64(e.phase()) << spanBits }

// countable fails for a revision without tokens below 2^53, such as the revision of a
// snapshot restored with a large --bump-revision.
func countable(rev int64) error {
	if rev >= 1<<(53-spanBits) {
		return fmt.Errorf("%w: etcd is at revision %d, which leaves no fencing tokens below 2^53 (want a revision below 2^%d)", driver.ErrInvalid, rev, 53-spanBits)
	}
	return nil
}

// holder returns the public facts of a claim.
func (e *entry) holder() driver.Holder {
	return driver.Holder{
		ID: driver.PublicID(e.ID), Owner: e.Owner, Note: e.Note, Fence: e.token(),
		Since: time.UnixMicro(e.Since), Weight: e.Weight, Limit: e.Limit,
	}
}

// refusal describes the first claim in the way, if the record of the claim has been read. Left is
// the TTL, an upper bound: the remaining time of the lease would need a further request.
func (q queue) refusal() driver.Grant {
	if len(q) == 0 || q[0].unread() {
		return driver.Grant{}
	}
	return driver.Grant{Left: q[0].TTL, Holder: q[0].holder()}
}
