package engine

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A table is what the mutex of a core guards. See core.lock.
type table struct {
	turns  map[string]*turn
	spare  []*turn // for reuse
	agenda agenda
	ids    *mathrand.ChaCha8

	contended map[string]contention // by key

	renewing bool // the renewer runs

	leftovers []leftover
	cleaning  bool          // the cleaner runs
	until     time.Duration // when the cleaner stops; 0 before Close
}

func newTable() table {
	return table{
		turns: make(map[string]*turn), contended: make(map[string]contention),
		ids: newIDs(), agenda: agenda{armed: never},
	}
}

// turn returns the turn of a key.
func (t *table) turn(key string) *turn {
	of := t.turns[key]
	if of != nil {
		return of
	}
	if n := len(t.spare); n > 0 {
		of, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		of = new(turn)
	}
	of.key = key
	t.turns[key] = of
	return of
}

// maxSpare bounds the turns that are kept for reuse.
const maxSpare = 64

// callNext calls the waiter that becomes the contender, or removes a turn that nothing needs.
func (t *table) callNext(of *turn) {
	if w := of.nextContender(); w != nil {
		w.call(nil, nil)
		return
	}
	t.recycle(of)
}

// recycle removes a turn that nothing needs.
func (t *table) recycle(of *turn) {
	if of.requests > 0 || len(of.leases) > 0 || of.queue.first != nil {
		return
	}
	delete(t.turns, of.key)
	if len(t.spare) < maxSpare {
		*of = turn{leases: of.leases}
		t.spare = append(t.spare, of)
	}
}

// lease makes the lease of a new claim.
func (t *table) lease(of *turn, want Terms, owner string) *lease {
	return &lease{
		turn:    of,
		noRenew: want.NoRenew,
		span:    1,
		release: [1]driver.Release{{Claim: driver.Claim{
			Key:    of.key,
			ID:     t.newID(),
			Weight: want.Weight,
			Limit:  want.Limit,
			TTL:    want.TTL,
			Owner:  owner,
			Note:   want.Note,
		}}},
	}
}

// maxContended is how many keys with a contention a core remembers.
const maxContended = 64

// remember notes a contention. If too many keys are remembered, remember drops the oldest key.
func (t *table) remember(key string, last contention) {
	if _, known := t.contended[key]; !known && len(t.contended) == maxContended {
		oldest, since := "", never
		for other, c := range t.contended {
			if c.left < since {
				oldest, since = other, c.left
			}
		}
		delete(t.contended, oldest)
	}
	t.contended[key] = last
}

// recall returns the contention of a key, and false if the last claim ended more than
// longContended ago. recall drops the key.
func (t *table) recall(key string, now time.Duration) (last contention, ok bool) {
	last, ok = t.contended[key]
	if ok {
		delete(t.contended, key)
	}
	return last, ok && now-last.left < longContended
}

// drop removes a lease and lets the first waiter contend. drop reports true for the call that
// removed the lease.
func (t *table) drop(l *lease) bool {
	first := l.turn.dismiss(l)
	if first {
		t.callNext(l.turn)
	}
	return first
}

// close ends every wait. close returns the holds, the leases of dropped holds, and the parked
// leases. An upgrade comes before its reader.
func (t *table) close() (holds []*Hold, dropped, parked []*lease) {
	for _, turn := range t.turns {
		for w := turn.queue.first; w != nil; w = turn.queue.first {
			turn.queue.remove(w)
			w.closed = true
			w.call(nil, nil)
		}
		for _, l := range slices.Backward(turn.leases) {
			h := l.holder()
			switch {
			case h != nil:
				holds = append(holds, h)
			case l.parkedAt > 0:
				l.unpark()
				parked = append(parked, l)
			case l.released == nil: // else it is being released
				t.agenda.remove(l)
				dropped = append(dropped, l)
			}
		}
	}
	return holds, dropped, parked
}

// newID returns a claim id: 128 random bits, never used again.
func (t *table) newID() string {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], t.ids.Uint64())
	binary.NativeEndian.PutUint64(id[8:], t.ids.Uint64())
	var text [32]byte
	hex.Encode(text[:], id[:])
	return string(text[:])
}

// newIDs returns the source of ids: a cipher stream, because a system call for every id
// would take longer than the rest of an uncontended lock.
func newIDs() *mathrand.ChaCha8 {
	var seed [32]byte
	rand.Read(seed[:]) // never fails
	return mathrand.NewChaCha8(seed)
}

// A leftover is a claim to release, at the latest until it has expired at the store anyway.
type leftover struct {
	driver.Release
	until time.Duration
}
