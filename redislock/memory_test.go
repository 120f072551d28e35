package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// TestFullServer fills the memory of a server that evicts nothing: what holds is
// renewed, released and handed over, and what is new is refused with the error
// that says why.
func TestFullServer(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	var renewals atomic.Int64
	a := newLocker(t, openStore(t, r.URL()), &holdfast.Options{Trace: &holdfast.Trace{
		Renewed: func(holdfast.Event) { renewals.Add(1) },
	}})
	b := openLocker(t, r.URL())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := servers.Patient(ctx, a.Lock, "held")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		lock, err := servers.Patient(ctx, b.Lock, "held")
		if err == nil {
			err = unlockAtOnce(lock)
		}
		got <- err
	}()
	awaitLine(t, a, "held", 1)

	r.Must("CONFIG", "SET", "maxmemory", "1")
	if _, err := servers.Patient(ctx, b.Lock, "new"); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("a new lock on a full server: %v; want its OOM error", err)
	}
	before := renewals.Load()
	until(t, "a renewal", func() bool { return renewals.Load() > before })
	if err := held.Err(); err != nil {
		t.Errorf("the lock on a full server: %v", err)
	}
	if err := unlock(held); err != nil {
		t.Errorf("unlock on a full server: %v", err)
	}
	if err := <-got; err != nil {
		t.Errorf("the one who waited: %v", err)
	}

	r.Must("CONFIG", "SET", "maxmemory", "0")
	lock, err := servers.Patient(ctx, b.Lock, "new")
	if err != nil {
		t.Fatalf("with memory again: %v", err)
	}
	if err := unlock(lock); err != nil {
		t.Error(err)
	}
}

// TestFullServerKeepsReaders is about claims that share a key, of which scripts
// know more: their sum, and a time before which none of them runs out.
func TestFullServerKeepsReaders(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	s := openStore(t, r.URL())
	const short = 3 * time.Second
	var brief, long, writer driver.Claim
	var asked time.Time
	var err error
	unproved.InTime(t, short, func() {
		asked = time.Now()
		key := fmt.Sprint("key ", asked.UnixNano())
		brief, long, writer = exclusive(key, "brief"), exclusive(key, "long"), exclusive(key, "writer")
		brief.Weight, brief.TTL, long.Weight = 1, short, 1
		r.Must("CONFIG", "SET", "maxmemory", "0")
		for _, c := range []driver.Claim{brief, long} {
			if g, err := s.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
				t.Fatalf("%s: %+v, %v", c.ID, g, err)
			}
		}
		brief.TTL = long.TTL / 2
		r.Must("CONFIG", "SET", "maxmemory", "1")
		err = s.Renew(t.Context(), []driver.Renewal{{Claim: brief}})[0]
	})
	if err != nil {
		t.Errorf("renew what ends before the other one: %v", err)
	}
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: brief}); err != nil || !g.OK {
		t.Errorf("ask again: %+v, %v", g, err)
	}
	until(t, "the first one to have run out if it had not been renewed", func() bool { return time.Since(asked) > 2*short })
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: writer}); err != nil || g.OK {
		t.Errorf("try: %+v, %v; want it refused", g, err)
	}
	errs := s.Release(t.Context(), []driver.Release{{Claim: brief, Late: true}, {Claim: long}, {Claim: writer, Late: true}})
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], driver.ErrLost) {
		t.Errorf("release of two that hold and one that does not: %v", errs)
	}
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: writer}); err != nil || g.OK {
		t.Errorf("after its late release: %+v, %v; want it refused", g, err)
	}
}

// TestFullServerAtOnce lets many ask again at the same time, so that their calls
// go together.
func TestFullServerAtOnce(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	s := openStore(t, r.URL())
	var held []driver.Ask
	for i := range 64 {
		a := driver.Ask{Claim: exclusive(fmt.Sprint("key", i), fmt.Sprint("holder", i))}
		if g, err := s.Acquire(t.Context(), a); err != nil || !g.OK {
			t.Fatalf("%s: %+v, %v", a.ID, g, err)
		}
		held = append(held, a)
	}
	r.Must("CONFIG", "SET", "maxmemory", "1")
	var asking sync.WaitGroup
	for _, a := range held {
		asking.Go(func() {
			if g, err := s.Acquire(t.Context(), a); err != nil || !g.OK {
				t.Errorf("%s, which holds: %+v, %v", a.ID, g, err)
			}
		})
	}
	asking.Wait()
}

// TestEviction lets a server evict locks that are held. Open has warned of it,
// and each owner is told.
func TestEviction(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	store := openStore(t, r.URL())
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if warnings, err := store.Check(ctx); err != nil || len(warnings) > 0 {
		t.Errorf("a server that evicts nothing: warnings %q, %v", warnings, err)
	}
	locks := newLocker(t, store, nil)
	held := make(map[string]*holdfast.Lock)
	for i := range 100 {
		key := fmt.Sprint("key", i)
		lock, err := servers.Patient(ctx, locks.Lock, key)
		if err != nil {
			t.Fatal(err)
		}
		held[key] = lock
	}

	used, err := strconv.Atoi(r.Info("used_memory"))
	if err != nil {
		t.Fatal(err)
	}
	r.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	r.Must("CONFIG", "SET", "maxmemory", strconv.Itoa(used+200_000))
	warnings, err := store.Check(ctx)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "allkeys-random") {
		t.Errorf("a server that evicts: warnings %q, %v; want one that names the policy", warnings, err)
	}
	for i := 0; r.Info("evicted_keys") == "0" || i < 40; i++ {
		r.Must("SET", fmt.Sprint("filler", i), strings.Repeat("x", 20_000))
	}
	r.Must("CONFIG", "SET", "maxmemory", "0")

	gone := 0
	for key, lock := range held {
		holders, err := locks.Holders(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if len(holders) > 0 {
			continue
		}
		gone++
		select {
		case <-lock.Done():
		case <-ctx.Done():
			t.Fatalf("the owner of %s was not told that it is gone", key)
		}
		if err := lock.Err(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%s was evicted: %v; want ErrLost", key, err)
		}
		delete(held, key)
	}
	t.Logf("%d of 100 locks were evicted", gone)
	if gone == 0 {
		t.Error("nothing was evicted")
	}
	for key, lock := range held {
		if err := unlock(lock); err != nil {
			t.Errorf("%s was not evicted: %v", key, err)
		}
	}
}

// TestEvictedLine takes the queue away from the waiters: they queue up
// again when they ask.
func TestEvictedLine(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	s := openStore(t, r.URL())
	var holders []driver.Holder
	var err error
	tries := 0
	unproved.InTime(t, exclusive("", "").Alive(), func() {
		tries++
		key := fmt.Sprint("key ", tries)
		first := driver.Ask{Claim: exclusive(key, "first"), Wait: true}
		second := driver.Ask{Claim: exclusive(key, "second"), Wait: true}
		for _, a := range []driver.Ask{{Claim: exclusive(key, "holder")}, first, second} {
			if _, err := s.Acquire(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range r.Must("KEYS", "*:line:*").([]any) {
			r.Must("DEL", name.(string))
		}
		for _, a := range []driver.Ask{second, first} {
			if g, err := s.Acquire(t.Context(), a); err != nil || g.OK {
				t.Fatalf("%s: %+v, %v", a.ID, g, err)
			}
		}
		holders, err = s.Holders(t.Context(), key)
	})
	if err != nil || len(holders) != 3 || holders[1].ID != driver.PublicID("second") {
		t.Errorf("%+v, %v; want the holder, and in the queue the second and the first", holders, err)
	}
}

// TestKeysLeaveNothing locks each key once. $HOLDFAST_KEYS is how many, 20000
// unless it is set, or 1000 with -short.
func TestKeysLeaveNothing(t *testing.T) {
	keys := 20_000
	if testing.Short() {
		keys = 1000
	}
	if text := os.Getenv("HOLDFAST_KEYS"); text != "" {
		var err error
		if keys, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	r := servers.StartRedis(t)
	// The remains of a lock stay for longer than this test waits.
	lasting := &holdfast.Options{TTL: 10 * patience}
	a, b := newLocker(t, openStore(t, r.URL()), lasting), newLocker(t, openStore(t, r.URL()), lasting)
	var next atomic.Int64
	var running sync.WaitGroup
	for range 64 {
		running.Go(func() {
			for i := next.Add(1); int(i) <= keys && !t.Failed(); i = next.Add(1) {
				useOnce(t, a, b, fmt.Sprint("job/", i), i%100 == 0)
			}
		})
	}
	running.Wait()
	// A release that was not answered goes on in the background, and leaves a tomb for ten seconds.
	until(t, fmt.Sprintf("%d keys to leave nothing but the one with the highest token", keys), func() bool {
		left, _ := r.Must("KEYS", "*").([]any)
		return len(left) == 1 && left[0] == "holdfast:floor"
	})
}

// useOnce locks and unlocks a key, with another who is refused and one who waits
// if it is contended.
func useOnce(t *testing.T, a, b *holdfast.Locker, key string, contended bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := servers.Patient(ctx, a.Lock, key)
	if err != nil {
		t.Error(err)
		return
	}
	done := make(chan error, 1)
	if !contended {
		done <- nil
	} else {
		if _, err := servers.Patient(ctx, b.TryLock, key); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%s was held: %v", key, err)
		}
		go func() {
			lock, err := servers.Patient(ctx, b.Lock, key, holdfast.Shared())
			if err == nil {
				err = unlockAtOnce(lock)
			}
			done <- err
		}()
	}
	if err := errors.Join(unlock(lock), <-done); err != nil {
		t.Error(err)
	}
}
