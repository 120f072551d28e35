package memcachelock

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/internal/unproved"
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

var commands = regexp.MustCompile(`(^|\r\n)(mg|md|ms|add|cas|stats|set) `)

func (c *metered) Write(b []byte) (int, error) {
	c.meter.writes.Add(1)
	c.meter.commands.Add(int64(len(commands.FindAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\r\n\r\n")), -1))))
	return c.Conn.Write(b)
}

// A heard store counts the calls that were not answered. Such a call is made again, and
// may leave a record of its claim's id in the item of the key for a while.
type heard struct {
	*Store
	unanswered atomic.Int64
}

func (s *heard) note(err error) {
	if err != nil && !errors.Is(err, driver.ErrLost) {
		s.unanswered.Add(1)
	}
}

func (s *heard) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, a)
	s.note(err)
	return g, err
}

func (s *heard) Release(ctx context.Context, rs []driver.Release) []error {
	errs := s.Store.Release(ctx, rs)
	for _, err := range errs {
		s.note(err)
	}
	return errs
}

// items counts the items of a server, without those of canaries that were cut off.
func items(m *servers.Memcached) int {
	n := m.Stat("curr_items")
	for name := range m.Items() {
		if strings.Contains(name, "@canary") {
			n--
		}
	}
	return n
}

// TestLeavesNothing locks and unlocks many keys, in every way.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	s := &heard{Store: newStore(t, nil, m)}
	goroutines := servers.Goroutines(t)
	locks := must.Get(holdfast.New(s, nil))
	keys, workers := 10_000, 10
	if testing.Short() {
		keys = 1000
	}
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range keys / workers {
				kind := [][]holdfast.LockOption{nil, {holdfast.Shared()}, {holdfast.Slots(3)}}[i%3]
				lock, err := servers.Patient(t.Context(), locks.Lock, fmt.Sprint("key ", w, "/", i), kind...)
				if err == nil {
					err = unlock(lock)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := len(m.Connections()); n > conns+int(s.unanswered.Load()) {
		t.Errorf("%d connections, after %d calls that were not answered", n, s.unanswered.Load())
	}
	if err := unlocking.Release(locks.Close); err != nil {
		t.Error(err)
	}
	late := s.unanswered.Load()
	if n := int64(items(m)); n > 1+late {
		t.Errorf("%d items are left, want the clock's, and at most one for each of %d unanswered calls", n, late)
	}
	if n := int64(len(s.lastWrites.byID)); n > late {
		t.Errorf("%d claims are remembered, after %d calls that were not answered", n, late)
	}
	servers.Until(t, "the goroutines to end", func() bool { return goroutines() == 1 })
}

// TestRenewInBatches renews as many claims as the core does at once.
func TestRenewInBatches(t *testing.T) {
	t.Parallel()
	var sent meter
	s := newStore(t, &Options{Prefix: "batch:", Dial: sent.dial}, shared)
	made := sent.conns.Load()
	var renewals []driver.Renewal
	var releases []driver.Release
	for i := range 500 {
		c := exclusive(fmt.Sprint("key ", i), fmt.Sprint(i))
		c.TTL = time.Hour // The first is to stand when the last is granted.
		granted(t, s, c)
		renewals = append(renewals, driver.Renewal{Claim: c.Claim})
		releases = append(releases, driver.Release{Claim: c.Claim})
	}
	writes, count := sent.writes.Load(), sent.commands.Load()
	if errs := s.Renew(t.Context(), renewals); errs != nil {
		t.Fatal(errs)
	}
	writes, count = sent.writes.Load()-writes, sent.commands.Load()-count
	t.Logf("%d claims are renewed with %d commands in %d pieces", len(renewals), count, writes)
	if writes > 10 || count > 2*int64(len(renewals)) {
		t.Errorf("%d claims took %d commands in %d pieces", len(renewals), count, writes)
	}
	if errs := s.Release(t.Context(), releases); errs != nil {
		t.Fatal(errs)
	}
	if n := sent.conns.Load() - made; n > 0 {
		t.Errorf("one caller needed %d more connections", n)
	}
}

// TestTenThousandHeld holds as many locks until each has been renewed, without a
// goroutine for each, and looks for what Close leaves.
func TestTenThousandHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 25 s: make prove")
	}
	m := servers.StartMemcached(t)
	s := &heard{Store: newStore(t, nil, m)}
	const n, lanes = 10_000, 20
	var mu sync.Mutex
	unrenewed := make(map[string]bool, n)
	for i := range n {
		unrenewed[fmt.Sprint("key ", i)] = true
	}
	var renewed atomic.Int64    // renewals
	var lost atomic.Int64       // because the server was slow
	over := make(chan struct{}) // closed when each lock has been renewed or lost
	settled := func(key string) {
		mu.Lock()
		defer mu.Unlock()
		last := len(unrenewed) == 1 && unrenewed[key]
		delete(unrenewed, key)
		if last {
			close(over)
		}
	}
	locks := must.Get(holdfast.New(s, &holdfast.Options{TTL: 30 * time.Second, Trace: &holdfast.Trace{
		Renewed: func(e holdfast.Event) {
			renewed.Add(1)
			settled(e.Key)
		},
		Lost: func(e holdfast.Event) {
			var why *holdfast.LostError
			if !errors.As(e.Err, &why) || why.Reason != holdfast.LossExpired && why.Reason != holdfast.LossUnreachable {
				t.Errorf("%q: %v", e.Key, e.Err)
			}
			lost.Add(1)
			settled(e.Key)
		},
	}}))
	goroutines := servers.Goroutines(t)
	held := make([]*holdfast.Lock, n)
	defer runtime.KeepAlive(held) // The engine does not renew or release a lock that is out of sight.
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			for i := lane; i < n; i += lanes {
				var err error
				if held[i], err = servers.Patient(t.Context(), locks.Lock, fmt.Sprint("key ", i)); err != nil {
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
	if now := goroutines(); now > n/100 {
		t.Errorf("%d goroutines for %d locks", now, n)
	}
	select {
	case <-over:
	case <-time.After(5 * patience):
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("%d locks were neither renewed nor lost", len(unrenewed))
	}
	err := locks.Close()
	switch {
	case renewed.Load() == 0:
		t.Fatalf("no lock was renewed, and %d were lost", lost.Load())
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		t.Fatal(err)
	case lost.Load() > 0 || err != nil:
		unproved.Skipf(t, "%d locks were lost after %d renewals; close: %v", lost.Load(), renewed.Load(), err)
	}
	if n := int64(items(m)); n > 1+s.unanswered.Load() {
		t.Errorf("%d items are left, want the clock's, and at most one for each of %d unanswered calls", n, s.unanswered.Load())
	}
	for key, err := range newStore(t, nil, m).Keys(t.Context(), "") {
		t.Errorf("%q is held, %v", key, err)
	}
}

// TestCommands counts the commands of a holder that renews, and of a waiter that is refused
// three times before it acquires the key.
func TestCommands(t *testing.T) {
	t.Parallel()
	var sent meter
	s := newStore(t, &Options{Prefix: "commands:", Dial: sent.dial}, shared)
	var wrong []string
	cost := func(what string, want int64, call func()) {
		before := sent.commands.Load()
		if call(); sent.commands.Load()-before != want {
			wrong = append(wrong, fmt.Sprintf("%s takes %d commands, want %d", what, sent.commands.Load()-before, want))
		}
	}
	released := func(c driver.Ask) {
		if err := release(t.Context(), s, c); err != nil {
			t.Error(err)
		}
	}
	refused := func(c driver.Ask, next bool) {
		if g, err := s.Acquire(t.Context(), c); err != nil || g.OK || g.Pause != nextPause || g.Next != next {
			wrong = append(wrong, fmt.Sprintf("%+v, %v; want a refusal, a pause of %v, and next: %v", g, err, nextPause, next))
		}
	}
	// Later, pauses grow, and a waiter writes its marks again.
	unproved.InTime(t, 500*time.Millisecond, func() {
		wrong = nil
		key := rand.Text()
		holder, waiter := exclusive(key, "holder of "+key), exclusive(key, "waiter for "+key)
		waiter.Wait = true
		ended, end := context.WithCancel(t.Context())
		end()
		unsent := func() {
			if err := renew(ended, s, holder); !errors.Is(err, context.Canceled) {
				t.Errorf("a renewal whose context has ended: %v", err)
			}
		}
		renewed := func() {
			if err := renew(t.Context(), s, holder); err != nil {
				t.Error(err)
			}
		}
		cost("a lock", 2, func() { granted(t, s, holder) })
		cost("a renewal", 2, renewed)
		cost("one that is not sent", 0, unsent)
		cost("the next", 2, renewed)
		cost("the first refusal", 2, func() { refused(waiter, false) })
		cost("the second, with a mark", 2, func() { refused(waiter, true) })
		cost("the third, with two marks", 3, func() { refused(waiter, true) })
		cost("the fourth", 1, func() { refused(waiter, true) })
		cost("a release, with a look for a mark", 2, func() { released(holder) })
		cost("the lock after refusals, and the end of the marks", 5, func() { granted(t, s, waiter) })
		cost("its release", 2, func() { released(waiter) })
	})
	for _, text := range wrong {
		t.Error(text)
	}
}

// TestWaitersArePatient counts what 32 waiters, each like a process of its own,
// ask of the server for each lock that one of them gets.
func TestWaitersArePatient(t *testing.T) {
	t.Parallel()
	tests := []struct {
		each int
		hold time.Duration
	}{{1, 0}, {2, time.Millisecond}, {1, 10 * time.Millisecond}, {20, time.Millisecond}}
	if testing.Short() {
		tests = tests[1:2]
	}
	for _, test := range tests {
		name := fmt.Sprint(test.each, " for ", test.hold)
		t.Run(name, func(t *testing.T) {
			var sent meter
			const waiters = 32
			var all sync.WaitGroup
			var lockers []*holdfast.Locker
			for range waiters {
				s := newStore(t, &Options{Prefix: strings.ReplaceAll(name, " ", "-") + ":", Dial: sent.dial}, shared)
				lockers = append(lockers, must.Get(holdfast.New(s, nil)))
			}
			before, start := sent.commands.Load(), time.Now()
			for _, locks := range lockers {
				all.Go(func() {
					defer locks.Close()
					for range test.each {
						lock, err := servers.Patient(t.Context(), locks.Lock, "key")
						if err == nil {
							<-time.After(test.hold) // the work
							err = unlock(lock)
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			took, count := time.Since(start), float64(sent.commands.Load()-before)
			per := count / float64(waiters*test.each)
			t.Logf("%.1f commands for each of %d locks, in %v", per, waiters*test.each, took)
			// 6 to 23 for each lock, and what waiters send while the machine is slow: three
			// commands every quarter of a second.
			if most := float64(waiters) * (20*float64(test.each) + 3*4*took.Seconds()); count > most {
				t.Errorf("%.0f commands, want at most %.0f", count, most)
			}
		})
	}
}
