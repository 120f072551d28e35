package holdfast

import (
	"errors"
	"fmt"
	"sync"
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
		if err := lk.Break(t.Context(), key(0), held[0].ID()); err != nil {
			t.Fatal(err)
		}
		<-held[0].Done()
		if err := held[0].Err(); !errors.Is(err, ErrLost) {
			t.Errorf("broken lock: %v, want ErrLost", err)
		}
		if size, want := lk.engine.Size().Leases, keys-1; size != want {
			t.Errorf("%d leases, want %d", size, want)
		}
		var waits sync.WaitGroup
		for i := range keys {
			waits.Go(func() {
				l, err := lk.Lock(t.Context(), key(i))
				if i == 0 && err == nil {
					err = l.Unlock()
				}
				if i > 0 && !errors.Is(err, ErrClosed) {
					t.Errorf("wait for %s: %v, want ErrClosed", key(i), err)
				}
			})
		}
		synctest.Wait()
		if err := lk.Close(); err != nil {
			t.Fatal(err)
		}
		waits.Wait()
		for i, l := range held[1:] {
			if err := l.Err(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s after Close: %v, want ErrClosed", key(i+1), err)
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
