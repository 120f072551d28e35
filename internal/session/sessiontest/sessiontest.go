// Package sessiontest holds helpers for the tests of every store in session mode.
package sessiontest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// Patience is how long a test waits for events that are immediate on a healthy machine.
const Patience = time.Minute

// Locker returns a Locker that is closed when the test ends.
func Locker(t *testing.T, store driver.Store, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	lk := must.Get(holdfast.New(store, opts))
	t.Cleanup(func() { lk.Close() })
	return lk
}

// Bounded returns a context that ends after [Patience].
func Bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Locked acquires a lock, which is not garbage-collected before the test ends.
func Locked(t *testing.T, lk *holdfast.Locker, key string) *holdfast.Lock {
	t.Helper()
	l, err := servers.Patient(Bounded(t), lk.Lock, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runtime.KeepAlive(l) })
	return l
}

// Refused returns the error with which [holdfast.Open] refuses a server. If a slow server does not
// answer the check in time, Open accepts the server. Then Refused returns the error with which the
// store refuses a claim. A time-out is no refusal. A doubt, which a time-out may leave, is no
// refusal either.
func Refused(t *testing.T, url string) (err error) {
	t.Helper()
	servers.Await(t, "a refusal", func() error {
		began := time.Now()
		lk, refusal := holdfast.Open(t.Context(), url, nil)
		switch {
		case refusal == nil && time.Since(began) < time.Second:
			return cmp.Or(lk.Close(), errors.New("the server was accepted"))
		case refusal == nil:
			_ = lk.Close()
			if refusal = claim(t, url); !errors.Is(refusal, driver.ErrInvalid) {
				return fmt.Errorf("the check of Open had no time, and a claim: %w", refusal)
			}
			unproved.Logf(t, "the check of Open had no time; the server refused the first claim")
		case errors.Is(refusal, os.ErrDeadlineExceeded), strings.Contains(refusal.Error(), "as during a failover"):
			return refusal
		}
		err = refusal
		return nil
	})
	return err
}

// FailsOver checks a server during a failover: the first connection of a store leads to the old
// primary, and all later connections lead to the new primary. A check returns a doubt and refuses
// nothing. A later check succeeds.
func FailsOver(t *testing.T, open func() driver.Checker) {
	t.Helper()
	check := func(store driver.Checker) error {
		_, err := store.Check(Bounded(t))
		if errors.Is(err, driver.ErrInvalid) {
			t.Fatalf("during a failover: %v", err)
		}
		return err
	}
	var store driver.Checker
	// The first connection may fail on a slow machine. There is another first connection only for a
	// new store.
	servers.Until(t, "a doubt", func() bool {
		store = open()
		err := check(store)
		return err != nil && strings.Contains(err.Error(), "as during a failover")
	})
	servers.Await(t, "a proof of the new primary", func() error { return check(store) })
}

// claim returns the error of a request for a claim. The request has more time than the check of
// Open.
func claim(t *testing.T, url string) error {
	store, err := driver.Open(Bounded(t), url)
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Acquire(Bounded(t), driver.Ask{Claim: driver.Claim{
		Key: rand.Text(), ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: 15 * time.Second,
	}})
	return cmp.Or(err, errors.New("it was answered"))
}

// Ends waits until a lock is lost.
func Ends(t *testing.T, l *holdfast.Lock) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(Patience):
		t.Fatalf("the lock on %s was not lost within %v", l.Key(), Patience)
	}
	if !errors.Is(l.Err(), holdfast.ErrLost) {
		t.Errorf("the lock on %s ended with %v, want ErrLost", l.Key(), l.Err())
	}
}

// A Server can be killed and restarted.
type Server interface {
	Kill()
	Restart()
}

// Waiters is the number of waited-for locks in [Crash].
const Waiters = 20

// Crash kills the server while a first Locker holds locks and a second Locker waits for
// some of these locks, as waiting has checked. Every holder is notified, every waiter
// acquires its lock once the server is back, and no key has two holders. Crash returns the
// tokens by key: of all holders, and of the waiters. A token is 0 if the lock was lost at
// once.
func Crash(t *testing.T, server Server, holder, waiter *holdfast.Locker, waiting func()) (before, after []uint64) {
	t.Helper()
	const held = 100
	key := func(i int) string { return fmt.Sprint("crash/", i) }
	var locks []*holdfast.Lock
	for i := range held {
		l := Locked(t, holder, key(i))
		locks, before = append(locks, l), append(before, l.Fence())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*Patience)
	defer cancel()
	after = make([]uint64, Waiters)
	var wg sync.WaitGroup
	for i := range after {
		wg.Go(func() {
			l, err := servers.Patient(ctx, waiter.Lock, key(i))
			if err != nil {
				t.Errorf("a waiter got %v", err)
				return
			}
			if locks[i].Err() == nil {
				t.Errorf("%s is held twice", l.Key())
			}
			after[i] = l.Fence()
		})
	}
	waiting()
	server.Kill()
	for _, l := range locks {
		Ends(t, l)
	}
	server.Restart()
	served := time.Now()
	wg.Wait()
	t.Logf("the waiters got on %v after the server was back", time.Since(served))
	return before, after
}

// SilentTTL is the TTL of the first Locker in [Silent]: the shortest that leaves a call its full
// second, see callLimit of the engine.
const SilentTTL = 6 * time.Second

// Silent cuts a holder off without notice, like a pause of the process or a broken network.
// The server grants the lock to the second Locker, and the first Locker is notified before.
// Silent returns the tokens of both.
func Silent(t *testing.T, first, second *holdfast.Locker, cut func()) (earlier, later uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*Patience)
	defer cancel()
	var held *holdfast.Lock
	for earlier == 0 { // A pause of the machine may cost the lock.
		var err error
		if held, err = servers.Patient(ctx, first.Lock, "silent"); err != nil {
			t.Fatalf("the first lock: %v", err)
		}
		earlier = held.Fence()
	}
	cut()
	began := time.Now()
	deadline, _ := held.Deadline()
	next, err := servers.Patient(ctx, second.Lock, "silent", holdfast.TTL(Patience))
	if err != nil {
		t.Fatalf("the second lock, after the first holder was cut off: %v", err)
	}
	later = next.Fence()
	if err := held.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("another has the lock, and the first holder sees %v", err)
	}
	if took, left := time.Since(began), deadline.Sub(began); took < left {
		t.Errorf("another got in %v after the holder fell silent, whose lease had %v left", took, left)
	}
	if later <= earlier {
		t.Errorf("the later token is %d, the earlier one %d", later, earlier)
	}
	return earlier, later
}
