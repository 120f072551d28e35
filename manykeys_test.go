package holdfast

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/must"
	_ "github.com/holdfast-go/holdfast/memlock"
)

// TestManyKeysInMemory has enough keys for each core of an engine: renewals, losses and Close
// reach them all.
func TestManyKeysInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lk := must.Get(Open(t.Context(), "mem://many-keys", nil))
		other := must.Get(Open(t.Context(), "mem://many-keys", nil))
		defer other.Close()
		const keys = 200
		key := func(i int) string { return fmt.Sprint("key/", i) }
		var held []*Lock
		for i := range keys {
			held = append(held, must.Get(lk.Lock(t.Context(), key(i))))
			if i > 0 && held[i].Fence() <= held[i-1].Fence() {
				t.Errorf("token %d follows %d", held[i].Fence(), held[i-1].Fence())
			}
		}
		time.Sleep(time.Minute) // four times the TTL
		for i, l := range held {
			if err := l.Err(); err != nil {
				t.Fatalf("%s: %v", key(i), err)
			}
		}
		for i, l := range held[:keys/2] {
			if err := lk.Break(t.Context(), key(i), l.ID()); err != nil {
				t.Fatal(err)
			}
			if err := l.Err(); !errors.Is(err, ErrLost) { // without a renewal in between
				t.Errorf("broken lock of %s: %v, want ErrLost", key(i), err)
			}
		}
		if size, want := lk.engine.Size().Leases, keys/2; size != want {
			t.Errorf("%d leases, want %d", size, want)
		}
		var waits sync.WaitGroup
		for i := range keys {
			want := ErrClosed
			if i < keys/2 {
				want = nil
			}
			waits.Go(func() {
				l, err := lk.Lock(t.Context(), key(i))
				if err == nil {
					err = l.Unlock()
				}
				if !errors.Is(err, want) {
					t.Errorf("wait for %s: %v, want %v", key(i), err, want)
				}
			})
		}
		synctest.Wait()
		if err := lk.Close(); err != nil {
			t.Fatal(err)
		}
		waits.Wait()
		for i, l := range held[keys/2:] {
			if err := l.Err(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s after Close: %v, want ErrClosed", key(keys/2+i), err)
			}
		}
		if size := lk.engine.Size(); size.Leases+size.Leftovers > 0 {
			t.Errorf("after Close %+v is left", size)
		}
		for i := range keys {
			if err := must.Get(other.TryLock(t.Context(), key(i))).Unlock(); err != nil {
				t.Errorf("%s for another Locker: %v", key(i), err)
			}
		}
	})
}

// TestCloseOfManyKeysInMemory leaves dropped locks, and keys that must stay locked for longer.
func TestCloseOfManyKeysInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped, unlocked atomic.Int32
		lk := must.Get(Open(t.Context(), "mem://close", &Options{Trace: &Trace{
			Lost:     func(Event) { dropped.Add(1) },
			Unlocked: func(Event) { unlocked.Add(1) },
		}}))
		other := must.Get(Open(t.Context(), "mem://close", nil))
		defer other.Close()
		const each = 100
		var keys []string
		var kept []*Lock
		for i := range each {
			keys = append(keys, fmt.Sprint("dropped/", i), fmt.Sprint("kept/", i))
			must.Get(lk.Lock(t.Context(), keys[2*i]))
			kept = append(kept, must.Get(lk.Lock(t.Context(), keys[2*i+1], MinHold(time.Minute))))
		}
		time.Sleep(6 * time.Second) // past the first renewal
		synctest.Wait()
		runtime.GC()
		runtime.GC()
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
		if dropped.Load() != each || unlocked.Load() != each {
			t.Errorf("Close told of %d dropped and %d unlocked locks, want %d each", dropped.Load(), unlocked.Load(), each)
		}
		for _, key := range keys {
			if _, err := other.TryLock(t.Context(), key); !errors.Is(err, ErrHeld) {
				t.Errorf("%s after Close: %v, want ErrHeld", key, err)
			}
		}
		time.Sleep(time.Minute)
		for _, key := range keys {
			if err := must.Get(other.TryLock(t.Context(), key)).Unlock(); err != nil {
				t.Errorf("%s later: %v", key, err)
			}
		}
		runtime.KeepAlive(kept)
	})
}

// TestCloseTwiceBesideLocks: once any Close has returned, no key is granted.
func TestCloseTwiceBesideLocks(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		url := fmt.Sprint("mem://close-twice-", round)
		lk, other := must.Get(Open(t.Context(), url, nil)), must.Get(Open(t.Context(), url, nil))
		var closed atomic.Bool
		var all sync.WaitGroup
		for i := range 32 {
			key := fmt.Sprint("key/", i)
			all.Go(func() {
				for {
					late := closed.Load()
					l, err := lk.Lock(t.Context(), key)
					switch {
					case errors.Is(err, ErrClosed):
						return
					case err != nil:
						t.Error(err)
						return
					case late:
						t.Errorf("%s was locked after Close", key)
					}
					if err := l.Unlock(); err != nil && !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
				}
			})
		}
		for range 2 {
			all.Go(func() {
				if err := lk.Close(); err != nil {
					t.Error(err)
				}
				closed.Store(true)
			})
		}
		all.Wait()
		for i := range 32 {
			if err := must.Get(other.TryLock(t.Context(), fmt.Sprint("key/", i))).Unlock(); err != nil {
				t.Error(err)
			}
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}
