package etcdlock

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// few is how many claims may be ahead of a claim that watches the whole folder. With more
// claims ahead, a watch on a single claim and a look at the turn cost less than an event for
// each departure.
const few = 16

// far is how many claims are taken to be ahead if etcd is slow. So far back, a place lasts as long
// as at the end of any queue.
const far = 3 * book.Crowd

// vast is how many claims a queue may have before its clients spare etcd the requests that they
// can do without. etcd needs some milliseconds to read a thousand claims, and a thousand clients
// may begin to wait at the same moment.
const vast = 64

// blocker returns the claim to watch in a long queue, false if there is none: the last known claim
// ahead that cannot hold beside c. The claim c waits at least until its blocker has left.
func (c *claim) blocker() (e entry, ok bool) {
	if len(c.ahead)+c.more <= few {
		return e, false
	}
	for i := len(c.ahead) - 1; i >= 0; i-- {
		if c.ahead[i].Weight+c.Weight > c.Limit {
			return c.ahead[i], true
		}
	}
	return e, false
}

// A turn watches for the turn of a claim. In a long queue it watches a single claim ahead, so
// that a departure is an event for one waiter, not for all waiters.
type turn struct {
	claim   driver.Claim
	wake    func(driver.Grant)
	refused chan struct{} // receives after a refusal
	begin   func()        // begins to watch a single claim; nil after that
}

// A crowd is a queue that was long lately, or that etcd was slow to read. The next claim joins
// the queue without a look before, and watches a single claim.
type crowd struct {
	until  time.Time
	claims int // more than few
}

// noteCrowdLocked records how many claims the queue of a key has.
func (s *Store) noteCrowdLocked(key string, claims int) {
	if claims > few {
		s.crowds[key] = crowd{s.now().Add(linger), claims}
	} else {
		delete(s.crowds, key)
	}
}

// openTurnLocked watches for the turn of a claim until stop is called. A watch of the folder,
// which leave ends, is enough until the queue is long. A watch of a single claim begins after
// the next refusal.
func (s *Store) openTurnLocked(c driver.Claim, wakes func(driver.Grant), single bool, leave func()) (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	t := &turn{claim: c, refused: make(chan struct{}, 1), wake: func(g driver.Grant) {
		if ctx.Err() == nil { // The end of the watch ends requests with an error, too.
			s.forget(c.ID)
			wakes(g)
		}
	}}
	t.begin = func() {
		s.running.Go(func() {
			leave()
			if s.decided(c.ID) {
				t.wake(driver.Grant{}) // The watch of the folder may have ended before its wake-up.
			}
			s.awaitTurn(ctx, t)
		})
	}
	s.turns[c.ID] = t
	if single {
		s.beginTurnLocked(t)
	}
	return func() {
		cancel()
		leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.turns[c.ID] == t {
			delete(s.turns, c.ID)
		}
	}
}

// decided reports whether a claim no longer waits, because it holds or has lost its place.
func (s *Store) decided(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.table[id]
	return c != nil && c.state != waiting
}

// beginTurnLocked begins to watch a single claim, if that has not begun.
func (s *Store) beginTurnLocked(t *turn) {
	if t.begin != nil && s.ctx.Err() == nil {
		t.begin()
		t.begin = nil
	}
}

// noteRefusalLocked tells the watches of a claim what is known of the queue.
func (s *Store) noteRefusalLocked(c *claim) {
	t := s.turns[c.ID]
	if _, single := c.blocker(); single {
		s.noteCrowdLocked(c.key, cmp.Or(s.crowds[c.key].claims, len(c.ahead)+c.more))
		if t != nil {
			s.beginTurnLocked(t)
		}
	} else {
		delete(s.crowds, c.key)
	}
	if t != nil {
		wake(t.refused)
	}
}

// awaitTurn watches one blocker after the other until ctx ends. In a short queue, awaitTurn
// watches the folder instead.
func (s *Store) awaitTurn(ctx context.Context, t *turn) {
	for ctx.Err() == nil {
		s.mu.Lock()
		c := s.table[t.claim.ID]
		waits := c != nil && c.state == waiting
		var e, blocker entry
		single := false
		if waits {
			e = c.entry
			blocker, single = c.blocker()
		}
		s.mu.Unlock()
		switch {
		case single:
			s.awaitDeparture(ctx, e, blocker)
			if s.lookAtTurn(ctx, t, e) == nil {
				continue
			}
		case waits:
			s.awaitInFolder(ctx, t)
		}
		select {
		case <-t.refused:
		case <-ctx.Done():
		}
	}
}

// awaitInFolder wakes the claim by the watch of the folder, until ctx ends.
func (s *Store) awaitInFolder(ctx context.Context, t *turn) {
	stop, err := s.watchFolder(ctx, t.claim, t.wake)
	if err != nil {
		return
	}
	defer stop()
	t.wake(driver.Grant{}) // The claim may have missed a departure.
	<-ctx.Done()
}

// awaitDeparture returns when the blocker of a claim has left, or when ctx has ended. If the
// claim itself has left before the watch begins, awaitDeparture returns, too.
func (s *Store) awaitDeparture(ctx context.Context, e, blocker entry) {
	ctx, left := context.WithCancel(ctx)
	defer left()
	s.watch(ctx, blocker.name, []clientv3.OpOption{clientv3.WithFilterPut()}, func(int64) {
		// The blocker may have left before the watch began.
		a, err := s.do(ctx, txn{
			when: []clientv3.Cmp{e.stays(), blocker.stays()},
			then: []clientv3.Op{clientv3.OpGet(e.name, clientv3.WithKeysOnly())},
		})
		if err != nil || !a.Succeeded {
			left()
		}
	}, func([]*clientv3.Event) { left() })
}

// lookAtTurn looks whether a claim holds now that its blocker has left, and wakes the claim
// then, with a grant. If the claim still waits, it has a new blocker. After an error, and
// if the claim has lost its place, the claim is woken to request again.
func (s *Store) lookAtTurn(ctx context.Context, t *turn, e entry) error {
	folder := s.names.folder(t.claim.Key)
	ops := []clientv3.Op{clientv3.OpGet(folder, clientv3.WithPrefix())}
	if e.alone() {
		ops = s.names.ahead(t.claim.Key, e.rev)
	}
	a, err := s.do(ctx, txn{
		when: []clientv3.Cmp{e.stays(), e.first(folder)},
		then: []clientv3.Op{clientv3.OpGet(e.name)},
		els:  ops,
	})
	var v view
	if err == nil {
		v.rev = a.Header.Revision
		var first *etcdserverpb.RangeResponse
		if len(a.Responses) > 1 {
			first = a.kvs(1)
		}
		err = v.read(t.claim.Key, a.kvs(0), first)
	}
	if err != nil {
		t.wake(driver.Grant{})
		return err
	}
	if g, wakes := s.turned(t.claim.ID, e.rev, v); wakes {
		t.wake(g)
	}
	return nil
}

// turned records the queue that was read at the turn of a claim with a create revision. It reports
// whether the claim is to be woken: with a grant if the claim holds now, without a grant to request
// again. If the claim has queued again meanwhile, the queue that was read says nothing of it.
func (s *Store) turned(id string, rev int64, v view) (g driver.Grant, wakes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, i := s.table[id], v.index(id)
	if c != nil { // Another client may wait with the same id.
		if own := slices.IndexFunc(v.queue, func(e entry) bool { return e.name == c.name && e.ID == id }); own >= 0 {
			i = own
		}
	}
	switch {
	case c == nil || c.state != waiting || c.rev != rev:
		return g, false
	case i < 0:
		c.state, c.ahead = asking, nil // The claim has lost its place.
		return g, true
	case !s.learnLocked(c, v, i):
		return g, c.state == asking
	case c.lease.lastsLocked(s.now()):
		return s.pushedLocked(c), true
	}
	return g, true
}

// stillWaits returns the refusal of a claim in a long queue if the claim certainly waits,
// because the claim and its blocker are both in etcd. If each waiter read the whole queue again and
// again, waiting would cost more than locking. Nor does such a claim need the lease of a holder
// yet. The refusal names no holder if the first claim ahead has left since the read. The first
// claim is read, not compared in a nested transaction, because etcd writes its log for every
// nested transaction.
//
// In a vast queue, most requests are answered from memory: the watch tells when the blocker leaves,
// and the lease when the claim is lost.
func (a *ask) stillWaits(ctx context.Context) (g driver.Grant, waits bool) {
	a.mu.Lock()
	c, t := a.table[a.ID], a.turns[a.ID]
	if c == nil || c.state != waiting || t == nil {
		a.mu.Unlock()
		return g, false
	}
	blocker, single := c.blocker()
	if !single {
		a.mu.Unlock()
		return g, false
	}
	c.Span = span(a.Ask)
	if g, known := a.remembersLocked(c); known {
		a.mu.Unlock()
		return g, true
	}
	own, first := c.entry, c.ahead[0]
	readsFirst := first.unread()
	read := clientv3.OpGet(first.name, clientv3.WithKeysOnly()) // of no use for an unread claim, but etcd wants an operation
	if readsFirst {
		read = a.names.first(a.Key)
	}
	a.standLocked(c, later(c.until, a.wanted.Add(a.Alive())))
	a.mu.Unlock()
	r, err := a.do(ctx, txn{
		when: []clientv3.Cmp{own.stays(), blocker.stays()},
		then: []clientv3.Op{read},
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil || !r.Succeeded || a.table[a.ID] != c || c.state != waiting {
		return g, false
	}
	c.asked, a.settled = a.wanted, true
	c.checked(a.now())
	a.keepPlaceLocked(c)
	a.noteRefusalLocked(c) // The turn may have ended its watch after an error.
	kvs := r.kvs(0).Kvs
	if readsFirst && len(kvs) > 0 {
		first = c.noteFirst(kvs[0])
	}
	g = c.refusal()
	if len(kvs) == 0 || kvs[0].CreateRevision != first.rev {
		g.Holder = driver.Holder{}
	}
	return g, true
}

// remembersLocked returns the refusal of a claim in a vast queue if the last check is not long ago,
// and if etcd has kept the lease alive since.
func (a *ask) remembersLocked(c *claim) (g driver.Grant, known bool) {
	if !a.began.Before(c.checkFrom) || !c.lease.lastsLocked(a.began.Add(c.alive())) {
		return g, false
	}
	c.asked, a.settled = a.wanted, true
	a.keepPlaceLocked(c)
	a.noteRefusalLocked(c)
	g = c.refusal()
	g.Kept, g.Holder = min(c.kept, c.lease.end().Sub(a.began)), driver.Holder{}
	return g, true
}

// forget makes the next request for a claim ask etcd.
func (s *Store) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.table[id]; c != nil {
		c.checkFrom = time.Time{}
	}
}

// checked records that etcd has the claim and its blocker. In a vast queue the next check is after 10
// to 20 ms for each other claim, so that all waiters together send about 100 in a second. A check
// finds the first claim, for the name of the holder, and etcd reads the whole queue for that.
func (c *claim) checked(now time.Time) {
	c.checkFrom = time.Time{}
	if c.more > vast {
		wait := time.Duration(c.more) * 10 * time.Millisecond
		c.checkFrom = now.Add(wait + rand.N(wait))
	}
}

// noteFirst records the first claim of the queue, which was read, and returns it.
func (c *claim) noteFirst(kv *mvccpb.KeyValue) entry {
	e, err := readEntry(c.key, kv)
	switch {
	case err != nil || len(c.ahead) == 0 || !c.ahead[0].unread() || e.rev > c.ahead[0].rev:
	case e.rev == c.ahead[0].rev:
		c.ahead[0] = e
	default:
		c.ahead = slices.Insert(c.ahead, 0, e)
	}
	return e
}
