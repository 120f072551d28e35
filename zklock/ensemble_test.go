package zklock

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// TestEnsembleContract runs the suite against three servers, where one may not have
// heard yet of what was done at another. They do not elect a leader anew for a quarter of
// a minute in which one of them has not had its turn on this machine.
func TestEnsembleContract(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 30 s: make prove")
	}
	t.Parallel()
	e := servers.StartEnsemble(t, "forceSync=no", "syncLimit=60")
	drivertest.Run(t, harness(e.Addrs()...))
}

// TestFreedElsewhere frees a key at a follower again and again, and asks for it at the
// leader, which may have applied less than its follower. It is free there, too, and what
// is broken is lost.
func TestFreedElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	t.Parallel()
	e := servers.StartEnsemble(t, "forceSync=no", "syncLimit=60")
	at := newStore(t, []string{e.Leader().Addr()}, nil)
	far := newStore(t, []string{e.Followers()[0].Addr()}, nil)
	for i := range 300 {
		first, second := exclusive("elsewhere", fmt.Sprint("first ", i)), exclusive("elsewhere", fmt.Sprint("second ", i))
		if g, err := far.Acquire(bounded(t), first); err != nil || !g.OK {
			t.Fatalf("no. %d: the first got %+v, %v", i, g, err)
		}
		if err := release(bounded(t), far, first); err != nil {
			t.Fatalf("no. %d: %v", i, err)
		}
		if g, err := at.Acquire(bounded(t), second); err != nil || !g.OK {
			t.Fatalf("no. %d: the second got %+v, %v", i, g, err)
		}
		if err := far.Break(bounded(t), second.Key, driver.PublicID(second.ID)); err != nil {
			t.Fatalf("no. %d: break: %v", i, err)
		}
		if err := renew(bounded(t), at, second); !errors.Is(err, driver.ErrLost) {
			t.Fatalf("no. %d: what was broken was renewed, %v", i, err)
		}
	}
}

// TestEnsembleFaults kills, pauses and cuts off the leader and a follower in turn,
// while 100 locks are held, waited for and asked for.
func TestEnsembleFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 60 s: make prove")
	}
	t.Parallel()
	for name, harm := range map[string]func(e *servers.Ensemble, z *servers.ZooKeeper) (undo func()){
		"kill": func(e *servers.Ensemble, z *servers.ZooKeeper) func() {
			z.Kill()
			return z.Restart
		},
		"pause": func(e *servers.Ensemble, z *servers.ZooKeeper) func() {
			z.Pause()
			return z.Resume
		},
		"cut off": func(e *servers.Ensemble, z *servers.ZooKeeper) func() {
			e.CutOff(z, true)
			return func() { e.CutOff(z, false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := servers.StartEnsemble(t, "forceSync=no")
			opts := holdfast.Options{TTL: 2 * patience} // No lock is to be lost, however long an election takes.
			s := outage.Scene{
				TTL:     opts.TTL,
				Order:   true,
				Holders: locker(t, opts, e.Addrs()...),
				Waiters: locker(t, opts, e.Addrs()...),
				Late:    locker(t, opts, e.Addrs()...),
			}
			for _, who := range []string{"leader", "follower"} {
				s.Name = who
				harmed := e.Leader()
				if who == "follower" {
					harmed = e.Followers()[0]
				}
				s.Harm = func() func() { return harm(e, harmed) }
				s.Elected = func() {
					servers.Until(t, "there is another leader", func() bool { return e.Leader() != harmed })
				}
				s.Play(t)
				e.Await()
			}
		})
	}
}

// TestEnsembleCutsClientOff cuts a holder off from all servers of an ensemble, without
// a word. It ends its locks before those who wait for them have them.
func TestEnsembleCutsClientOff(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	t.Parallel()
	e := servers.StartEnsemble(t, "forceSync=no")
	var links []*servers.Proxy
	var addrs []string
	for _, addr := range e.Addrs() {
		p := servers.StartProxy(t, addr)
		links, addrs = append(links, p), append(addrs, p.Addr())
	}
	const n, ttl = 20, 2 * time.Second
	holder := locker(t, holdfast.Options{TTL: ttl}, addrs...)
	waiter := locker(t, holdfast.Options{TTL: ttl}, e.Addrs()...)
	var waiters sync.WaitGroup
	for i := range n {
		held := locked(t, holder, fmt.Sprint("cut/", i))
		token := held.Fence()
		waiters.Go(func() {
			l, err := lockedWithin(bounded(t), waiter, held.Key())
			switch {
			case err != nil:
				t.Errorf("%s: the waiter got %v", held.Key(), err)
				return
			case held.Err() == nil:
				t.Errorf("%s was given to another while its holder, who was cut off, believed to have it", held.Key())
			case l.Fence() <= token:
				t.Errorf("%s: token %d after %d", held.Key(), l.Fence(), token)
			}
			_ = l.Unlock() // the session is closed with the test
		})
	}
	for _, p := range links {
		p.Blackhole(true)
	}
	waiters.Wait()
}

// TestMajorityIsLost kills two of three servers. Locks are lost when their sessions
// are, and nobody gets them before the servers are back, with larger tokens.
func TestMajorityIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	t.Parallel()
	e := servers.StartEnsemble(t, "forceSync=no")
	opts := holdfast.Options{TTL: 6 * time.Second} // A pause of this machine is not to end a session.
	held := locked(t, locker(t, opts, e.Addrs()...), "majority")
	token := held.Fence()
	next := make(chan *holdfast.Lock, 1)
	other := locker(t, opts, e.Addrs()...)
	go func() {
		l, err := lockedWithin(within(t, 5*patience), other, "majority") // servers start meanwhile
		if err != nil {
			t.Error(err)
		}
		next <- l
	}()
	down := e.Nodes[:2]
	for _, z := range down {
		z.Kill()
	}
	<-held.Done()
	select {
	case l := <-next:
		t.Errorf("got %v of one server alone", l)
		return
	default:
	}
	if err := held.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("the lock ended with: %v", err)
	}
	for _, z := range down {
		z.Restart()
	}
	if l := <-next; l != nil && l.Fence() <= token {
		t.Errorf("the later token is %d, the earlier one %d", l.Fence(), token)
	}
}

// TestServersRestart kills all servers at once. When they are back, locks stand, and
// who waited has its place.
func TestServersRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	t.Parallel()
	e := servers.StartEnsemble(t)
	opts := holdfast.Options{TTL: patience / 2}
	a := locker(t, opts, e.Addrs()...)
	held := locked(t, a, "restart")
	next := make(chan *holdfast.Lock, 1)
	var refused atomic.Bool // A caller without an answer is not patient.
	opts.Trace = &holdfast.Trace{Tried: func(e holdfast.Event) {
		if errors.Is(e.Err, holdfast.ErrHeld) {
			refused.Store(true)
		}
	}}
	b := locker(t, opts, e.Addrs()...)
	go func() {
		l, err := lockedWithin(within(t, 5*patience), b, "restart") // servers start meanwhile
		if err != nil {
			t.Error(err)
		}
		next <- l
	}()
	queue := func() []holdfast.Holder {
		hs, err := a.Holders(bounded(t), "restart")
		if err != nil {
			return nil
		}
		return hs
	}
	servers.Until(t, "it waits", refused.Load)
	var before, after []holdfast.Holder
	servers.Until(t, "the servers answer", func() bool { before = queue(); return before != nil })
	began := time.Now()
	for _, z := range e.Nodes {
		z.Kill()
	}
	for _, z := range e.Nodes {
		z.Restart()
	}
	servers.Until(t, "the servers are back", func() bool { after = queue(); return after != nil })
	took, err := time.Since(began), held.Err()
	switch {
	case took > opts.TTL/2:
		unproved.Logf(t, "the servers were back after %v", took)
	case len(before) != 2 || len(after) != 2 || after[0].ID != before[0].ID || after[1].ID != before[1].ID:
		t.Errorf("in the queue were %v, and are %v", before, after)
	case err != nil:
		t.Errorf("the lock is lost: %v", err)
	}
	token := held.Fence()
	if err := held.Unlock(); err != nil {
		t.Logf("unlock: %v", err) // it goes on in the background
	}
	if l := <-next; l != nil && l.Fence() <= token {
		t.Errorf("the later token is %d, the earlier one %d", l.Fence(), token)
	}
}
