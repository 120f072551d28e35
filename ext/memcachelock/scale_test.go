package memcachelock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A meter counts what connections send.
type meter struct {
	conns, writes, commands atomic.Int64
}

func (m *meter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	m.conns.Add(1)
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &metered{c, m}, err
}

type metered struct {
	net.Conn
	meter *meter
}

var commands = regexp.MustCompile(`(^|\r\n)(mg|md|add|cas|stats|set) `)

func (c *metered) Write(b []byte) (int, error) {
	c.meter.writes.Add(1)
	c.meter.commands.Add(int64(len(commands.FindAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\r\n\r\n")), -1))))
	return c.Conn.Write(b)
}

// TestLeavesNothing locks and unlocks many keys, in every way.
func TestLeavesNothing(t *testing.T) {
	m := servers.StartMemcached(t)
	s := newStore(t, nil, m)
	before := runtime.NumGoroutine()
	locks := holdfast.New(s, nil)
	const keys, workers = 10_000, 10
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range keys / workers {
				kind := [][]holdfast.LockOption{nil, {holdfast.Shared()}, {holdfast.Slots(3)}}[i%3]
				lock, err := locks.Lock(t.Context(), fmt.Sprint("key ", w, "/", i), kind...)
				if err == nil {
					err = lock.Unlock()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := m.Stat("curr_items"); n != 1 {
		t.Errorf("%d items are left, want the clock's", n)
	}
	if n := len(s.holds.byID); n != 0 {
		t.Errorf("%d claims are remembered", n)
	}
	if n := m.Stat("curr_connections"); n > conns+4 {
		t.Errorf("%d connections", n)
	}
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	for late := time.After(patience); runtime.NumGoroutine() > before; {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatalf("%d goroutines, and before %d", runtime.NumGoroutine(), before)
		}
	}
}

// TestRenewInBatches renews as many claims as the core does at once.
func TestRenewInBatches(t *testing.T) {
	t.Parallel()
	var sent meter
	s := newStore(t, &Options{Prefix: "batch:", Dial: sent.dial}, shared)
	var cs []driver.Claim
	for i := range 500 {
		c := exclusive(fmt.Sprint("key ", i), fmt.Sprint(i))
		granted(t, s, c)
		cs = append(cs, c)
	}
	writes, count := sent.writes.Load(), sent.commands.Load()
	if errs := s.Renew(t.Context(), cs); errs != nil {
		t.Fatal(errs)
	}
	writes, count = sent.writes.Load()-writes, sent.commands.Load()-count
	t.Logf("%d claims are renewed with %d commands in %d pieces", len(cs), count, writes)
	if writes > 10 || count > 2*int64(len(cs)) {
		t.Errorf("%d claims took %d commands in %d pieces", len(cs), count, writes)
	}
	if errs := s.Release(t.Context(), cs); errs != nil {
		t.Fatal(errs)
	}
	if n := sent.conns.Load(); n != 1 {
		t.Errorf("one caller needed %d connections", n)
	}
}

// TestTenThousandHeld holds as many locks until each has been renewed, and counts
// what that costs: two commands for each, those of a hundred in one piece, and no
// goroutine.
func TestTenThousandHeld(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	var sent meter
	var renewals, givenUp atomic.Int64
	s := newStore(t, &Options{Dial: sent.dial}, m)
	locks := holdfast.New(s, &holdfast.Options{TTL: 30 * time.Second, Trace: &holdfast.Trace{
		Renewed: func(holdfast.Event) { renewals.Add(1) },
	}})
	const n, lanes = 10_000, 20
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	held := make([]*holdfast.Lock, n)
	for lane := range lanes {
		all.Go(func() {
			for i := lane; i < n; i += lanes {
				var err error
				if held[i], err = patiently(t.Context(), locks, fmt.Sprint("key ", i), &givenUp); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	if more := runtime.NumGoroutine() - before; more > n/2 { // other tests have some
		t.Errorf("%d goroutines for %d locks", more, n)
	}
	begun, writes, count := renewals.Load(), sent.writes.Load(), sent.commands.Load()
	for late := time.Now().Add(patience); renewals.Load() < begun+n && time.Now().Before(late); {
		<-time.After(10 * time.Millisecond)
	}
	begun, writes, count = renewals.Load()-begun, sent.writes.Load()-writes, sent.commands.Load()-count
	t.Logf("%d renewals took %d commands in %d pieces", begun, count, writes)
	if begun == 0 || count < 4*writes { // Nearly 200 are in one piece, fewer on a slow machine.
		t.Errorf("%d renewals took %d commands in %d pieces", begun, count, writes)
	}
	lost := slices.ContainsFunc(held, func(lock *holdfast.Lock) bool { return lock.Err() != nil }) // by a slow machine
	if err := locks.Close(); lost || err != nil {
		return
	}
	if n := int64(m.Stat("curr_items")); n > 1+givenUp.Load() {
		t.Errorf("%d items are left, want the clock's, and at most %d of locks that were given up", n, givenUp.Load())
	}
	for key, err := range newStore(t, nil, m).Keys(t.Context(), "") {
		t.Errorf("%q is held, %v", key, err)
	}
}

// patiently locks, and asks again if the server is slow. It counts the claims that
// were given up: the store keeps their ids out for a while, in the items of the keys.
func patiently(ctx context.Context, locks *holdfast.Locker, key string, givenUp *atomic.Int64) (*holdfast.Lock, error) {
	for {
		lock, err := locks.Lock(ctx, key)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return lock, err
		}
		givenUp.Add(1)
	}
}

// TestCommands counts the commands of one who has a key for itself and renews it, and
// of one who is refused twice before it gets it.
func TestCommands(t *testing.T) {
	t.Parallel()
	var sent meter
	s := newStore(t, &Options{Prefix: "commands:", Dial: sent.dial}, shared)
	cost := func(what string, want int64, call func()) {
		t.Helper()
		before := sent.commands.Load()
		if call(); sent.commands.Load()-before != want {
			t.Errorf("%s takes %d commands, want %d", what, sent.commands.Load()-before, want)
		}
	}
	release := func(c driver.Claim) {
		if err := first(s.Release(t.Context(), claims(c))); err != nil {
			t.Error(err)
		}
	}
	refused := func(c driver.Claim) {
		if g, err := s.Acquire(t.Context(), c); err != nil || g.OK || g.Pause != firstPause {
			t.Errorf("%+v, %v; want a refusal, and a pause", g, err)
		}
	}
	holder, waiter := exclusive("key", "holder"), exclusive("key", "waiter")
	waiter.Wait = true
	ended, end := context.WithCancel(t.Context())
	end()
	unsent := func() {
		if err := first(s.Renew(ended, claims(holder))); !errors.Is(err, context.Canceled) {
			t.Errorf("a renewal whose context has ended: %v", err)
		}
	}
	renewed := func() {
		if err := first(s.Renew(t.Context(), claims(holder))); err != nil {
			t.Error(err)
		}
	}
	cost("a lock", 2, func() { granted(t, s, holder) })
	cost("a renewal", 2, renewed)
	cost("one that is not sent", 0, unsent)
	cost("the next", 2, renewed)
	cost("the first refusal", 2, func() { refused(waiter) })
	cost("the second", 1, func() { refused(waiter) })
	cost("a release", 1, func() { release(holder) })
	cost("the lock after refusals", 3, func() { granted(t, s, waiter) })
	cost("its release", 1, func() { release(waiter) })
}

// TestWaitersArePatient counts what 32 waiters, each like a process of its own,
// ask of the server for each lock that one of them gets.
func TestWaitersArePatient(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		each int
		hold time.Duration
	}{{1, 0}, {1, time.Millisecond}, {1, 10 * time.Millisecond}, {20, time.Millisecond}} {
		name := fmt.Sprint(test.each, " for ", test.hold)
		t.Run(name, func(t *testing.T) {
			var sent meter
			const waiters = 32
			var all sync.WaitGroup
			var lockers []*holdfast.Locker
			for range waiters {
				s := newStore(t, &Options{Prefix: strings.ReplaceAll(name, " ", "-") + ":", Dial: sent.dial}, shared)
				lockers = append(lockers, holdfast.New(s, nil))
			}
			before, start := sent.commands.Load(), time.Now()
			for _, locks := range lockers {
				all.Go(func() {
					defer locks.Close()
					for range test.each {
						lock, err := locks.Lock(t.Context(), "key")
						if err == nil {
							<-time.After(test.hold) // the work
							err = lock.Unlock()
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			per := float64(sent.commands.Load()-before) / float64(waiters*test.each)
			t.Logf("%.1f commands for each of %d locks, in %v", per, waiters*test.each, time.Since(start))
			if per > 60 { // 4 to 9: how many depends on how fast the machine is.
				t.Errorf("%.1f commands for each lock", per)
			}
		})
	}
}
