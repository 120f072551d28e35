package leases

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// givenAway asks for a lock that somebody else has. If the server has forgotten
// it, the new holder gets a token above last, and the old one is told.
func givenAway(t *testing.T, locks *holdfast.Locker, old *holdfast.Lock, last uint64) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next, err := servers.Patient(ctx, locks.TryLock, old.Key())
	if errors.Is(err, holdfast.ErrHeld) {
		return false
	}
	succeed(t, err)
	if next.Fence() <= last {
		t.Errorf("%s has token %d now; %d was given before", old.Key(), next.Fence(), last)
	}
	select {
	case <-old.Done():
	case <-ctx.Done():
		t.Fatalf("the owner of %s was not told that it is gone", old.Key())
	}
	if err := old.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("%s is gone: %v; want ErrLost", old.Key(), err)
	}
	if err := old.Unlock(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("unlock of %s, which is gone: %v; want ErrLost", old.Key(), err)
	}
	succeed(t, unlock(next))
	return true
}

// Somebody deletes all rows.
func TestRowsDeletedByHand(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		held := lock(t, locker(t, at, nil), "key")
		last := held.Fence()
		e.shared.Must("DELETE FROM " + table(at))
		other := locker(t, at, &holdfast.Options{TTL: patience / 2})
		// A try without an answer in time may be in the way of the next for a while.
		servers.Until(t, "a lock whose row is gone to be given away", func() bool { return givenAway(t, other, held, last) })
	})
}

// A server that acknowledges what is not on disk crashes. Check has warned of it.
func TestLastCommitsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers of its own: make prove")
	}
	forgetful := map[*engine][]string{
		postgres: {"synchronous_commit = off", "wal_writer_delay = 10s"},
		mariadb:  {"innodb_flush_log_at_trx_commit = 0", "innodb_flush_log_at_timeout = 2700"},
	}
	flush := map[*engine]string{postgres: "CHECKPOINT", mariadb: "FLUSH LOGS"}
	each(t, func(t *testing.T, e *engine) {
		s := e.start(t, forgetful[e]...)
		at := create(t, s.URL())
		if warnings, err := open(t, at).Check(t.Context()); err != nil || len(warnings) != 1 {
			t.Errorf("Check warns of %q, %v; want that commits do not wait for the disk", warnings, err)
		}
		forgotten := 0
		// A slow server may have written them by then.
		for began := time.Now(); forgotten == 0 && time.Since(began) < patience; {
			s.Must(flush[e])
			a := locker(t, at, nil)
			var held []*holdfast.Lock
			var last uint64
			for i := range 10 {
				held = append(held, lock(t, a, fmt.Sprint("key", i)))
				last = max(last, held[i].Fence())
			}
			s.Kill()
			s.Restart()
			b := locker(t, at, &holdfast.Options{TTL: patience / 2})
			for _, l := range held {
				if givenAway(t, b, l, last) {
					forgotten++
				} else {
					_ = l.Unlock() // A slow machine has lost it by then.
				}
			}
		}
		if forgotten == 0 {
			t.Error("the server has lost no commit: this test shows nothing")
		}
	})
}

// A release need not wait for the disk. If a crash undoes the release, the claim stands until its
// TTL ends, and the next token is larger.
func TestCrashUndoesRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server of its own: make prove")
	}
	s := servers.StartPostgres(t, "wal_writer_delay = 10s", postgres.nosync)
	at := create(t, s.URL())
	const ttl = 10 * time.Second
	const owner = "a process that has unlocked"
	slow := true // no try has looked at the key before the TTL was over
	try := func() (undone bool) {
		locked := time.Now()
		released := lock(t, locker(t, at, &holdfast.Options{TTL: ttl, Owner: owner}), "key")
		last := released.Fence()
		if released.Unlock() != nil {
			return false // An Unlock without an answer proves nothing.
		}
		s.Kill()
		s.Restart()
		b := locker(t, at, &holdfast.Options{TTL: ttl})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		next, err := servers.Patient(ctx, b.TryLock, "key")
		slow = slow && time.Since(locked) >= ttl
		if held := new(holdfast.HeldError); errors.As(err, &held) {
			undone = held.Owner == owner // not an earlier try without an answer
			next, err = servers.Patient(ctx, b.Lock, "key")
		}
		succeed(t, err)
		if token := next.Fence(); token != 0 && token <= last { // 0: a slow machine has lost the lock
			t.Errorf("token %d after %d", token, last)
		}
		_ = next.Unlock()
		return undone
	}
	for began := time.Now(); time.Since(began) < patience; { // A slow server may have written the release.
		if try() {
			return
		}
	}
	if slow {
		unproved.Skipf(t, "no restart of PostgreSQL took less than %v", ttl)
	}
	t.Error("no crash has undone a release: this test shows nothing")
}
