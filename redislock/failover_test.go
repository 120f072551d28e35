package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A register takes a write only with a token that is not smaller than the
// largest it has seen: what a lock guards should do the same.
type register struct {
	mu     sync.Mutex
	max    uint64
	writes []string
}

func (r *register) write(token uint64, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.max {
		return false
	}
	r.max = token
	r.writes = append(r.writes, text)
	return true
}

// A fleet is a number of locks, each with the register that it guards.
type fleet struct {
	t         *testing.T
	locks     *holdfast.Locker
	held      []*holdfast.Lock
	registers []*register
	last      uint64 // the largest token so far
}

const fleetTTL = 30 * time.Second // longer than a failover takes on a busy machine

func (f *fleet) key(i int) string { return fmt.Sprint("key", i) }

// take locks n more keys.
func (f *fleet) take(ctx context.Context, n int) {
	f.t.Helper()
	for range n {
		i := len(f.held)
		lock, err := servers.Patient(ctx, f.locks.Lock, f.key(i))
		if err != nil {
			f.t.Fatal(err)
		}
		f.held = append(f.held, lock)
		f.last = max(f.last, lock.Fence())
		if f.registers = append(f.registers, &register{}); !f.registers[i].write(lock.Fence(), "old") {
			f.t.Fatal("the first write was refused")
		}
	}
}

// lost waits until the owners of all locks from the ith on know that they are
// gone, and lets others take those keys.
func (f *fleet) lost(ctx context.Context, i int, others *holdfast.Locker) {
	f.t.Helper()
	for ; i < len(f.held); i++ {
		next, err := servers.Patient(ctx, others.Lock, f.key(i))
		if err != nil {
			f.t.Fatalf("%s, which the server does not know any more: %v", f.key(i), err)
		}
		old := f.held[i]
		switch r := f.registers[i]; {
		case next.Fence() <= f.last:
			f.t.Errorf("%s has token %d now; %d was given before", f.key(i), next.Fence(), f.last)
		case !r.write(next.Fence(), "new"):
			f.t.Errorf("the new owner of %s may not write", f.key(i))
		case r.write(old.Fence(), "old"):
			f.t.Errorf("%s went back to its old owner", f.key(i))
		}
		select {
		case <-old.Done():
		case <-ctx.Done():
			f.t.Fatalf("the owner of %s was not told that it is gone", f.key(i))
		}
		if err := old.Err(); !errors.Is(err, holdfast.ErrLost) {
			f.t.Errorf("%s is gone: %v; want ErrLost", f.key(i), err)
		}
		if err := old.Unlock(); !errors.Is(err, holdfast.ErrLost) {
			f.t.Errorf("unlock of %s, which is gone: %v; want ErrLost", f.key(i), err)
		}
		if err := unlock(next); err != nil {
			f.t.Errorf("%s has a new owner, who cannot unlock: %v", f.key(i), err)
		}
	}
}

// TestFailover promotes a replica that has missed the last 50 of 100 locks.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary := servers.StartRedis(t)
	link, front := servers.StartProxy(t, primary.Addr()), servers.StartProxy(t, primary.Addr())
	replica := servers.StartReplica(t, link.Addr())
	url := "redis://" + front.Addr()
	f := &fleet{t: t, locks: newLocker(t, openStore(t, url), &holdfast.Options{TTL: fleetTTL})}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	const known, all = 50, 100
	f.take(ctx, known)
	primary.AwaitReplicas(1)
	link.Refuse(true)
	link.Reset()
	f.take(ctx, all-known)
	primary.Kill()
	replica.Promote()
	front.Redirect(replica.Addr())

	others := openLocker(t, url)
	f.lost(ctx, known, others)
	for i, lock := range f.held[:known] {
		if _, err := servers.Patient(ctx, others.TryLock, f.key(i)); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%s, which the replica knew: %v; want ErrHeld", f.key(i), err)
		}
		if err := unlock(lock); err != nil {
			t.Errorf("%s, which the replica knew: %v", f.key(i), err)
		}
	}
}

// TestRestartEmpty lets a server forget 100 locks.
func TestRestartEmpty(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	f := &fleet{t: t, locks: newLocker(t, openStore(t, r.URL()), &holdfast.Options{TTL: fleetTTL})}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	f.take(ctx, 100)
	r.RestartEmpty()
	f.lost(ctx, 0, openLocker(t, r.URL()))
}

// TestWaitForReplica expects that a grant which no replica has confirmed is none.
func TestWaitForReplica(t *testing.T) {
	r := servers.StartRedis(t)
	locks := openLocker(t, r.URL()+"?wait=1")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := servers.Patient(ctx, openLocker(t, r.URL()).Lock, "other") // so that the server knows the script
	if err != nil || unlock(lock) != nil {
		t.Fatal("cannot lock without wait", err)
	}
	// A slow server may say nothing in time, and then be busy with what was given up.
	until(t, "an error that tells of the replica", func() bool {
		_, err := locks.TryLock(ctx, "key")
		if err == nil {
			t.Fatal("granted without a replica")
		}
		return strings.Contains(err.Error(), "replica")
	})
	servers.StartReplica(t, r.Addr())
	until(t, "the key that nobody holds to be free", func() bool {
		lock, err := locks.TryLock(ctx, "key")
		return err == nil && lock.Unlock() == nil
	})
}

// TestPrimaryIsCutOff promotes a replica while the primary, which it cannot hear any
// more, goes on. Both grant the same key. With min-replicas-to-write, the primary
// soon refuses.
func TestPrimaryIsCutOff(t *testing.T) {
	t.Parallel()
	primary := servers.StartRedis(t)
	link := servers.StartProxy(t, primary.Addr())
	replica := servers.StartReplica(t, link.Addr())
	old, young := openLocker(t, primary.URL()), openLocker(t, replica.URL())
	primary.AwaitReplicas(1)
	link.Refuse(true)
	link.Reset()
	replica.Promote()
	for _, locks := range []*holdfast.Locker{old, young} {
		if err := mustLock(t, locks, "key").Err(); err != nil {
			t.Errorf("one of two primaries: %v", err)
		}
	}
	primary.Must("CONFIG", "SET", "min-replicas-to-write", "1")
	until(t, "the primary without a replica to refuse", func() bool {
		lock, err := old.TryLock(context.Background(), "other")
		if err == nil {
			err = lock.Unlock()
		}
		return err != nil && strings.Contains(err.Error(), "NOREPLICAS")
	})
}
