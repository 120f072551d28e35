package holdfast

import (
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDroppedLockIsLoggedAndNotRenewed(t *testing.T) {
	simulate(t, func(b *bench) {
		var log strings.Builder
		lost := make(chan Event, 10)
		lk := b.open(&Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Trace:  &Trace{Lost: func(e Event) { lost <- e }},
		})
		other := b.open(nil)
		b.lock(lk, "dropped")
		kept := b.lock(lk, "kept")
		time.Sleep(6 * time.Second) // past the first renewal
		synctest.Wait()
		runtime.GC()
		runtime.GC()
		next := b.lock(other, "dropped")
		synctest.Wait()
		if e := <-lost; len(lost) != 0 || e.Key != "dropped" || !errors.Is(e.Err, ErrLost) {
			b.Errorf("lost %+v and %d more, want the dropped lock only", e, len(lost))
		}
		if !strings.Contains(log.String(), `key=dropped`) {
			b.Errorf("the log does not name the dropped lock: %s", log.String())
		}
		if err := kept.Err(); err != nil {
			b.Errorf("the other lock: %v", err)
		}
		b.unlock(next)
		b.unlock(kept)
	})
}

// Close may come before anybody has noticed. The key stays taken: the work that the lock
// guards may go on, and nobody can be notified to end it.
func TestDroppedLockIsToldByClose(t *testing.T) {
	simulate(t, func(b *bench) {
		var told counts
		var lost []Event
		other := b.open(nil)
		lk := b.open(&Options{Trace: JoinTraces(told.trace(), &Trace{Lost: func(e Event) { lost = append(lost, e) }})})
		b.lock(lk, "dropped")
		time.Sleep(6 * time.Second) // past the first renewal
		synctest.Wait()
		runtime.GC()
		runtime.GC()
		if err := lk.Close(); err != nil {
			b.Error(err)
		}
		synctest.Wait()
		var why *LostError
		if len(lost) != 1 || !errors.As(lost[0].Err, &why) || why.Reason != LossDropped || told.held.Load() != 0 {
			b.Errorf("Close told of %+v, and leaves %d that hold", lost, told.held.Load())
		}
		if _, err := other.TryLock(b.Context(), "dropped"); !errors.Is(err, ErrHeld) {
			b.Errorf("the key after Close: %v, want ErrHeld", err)
		}
		b.unlock(b.lock(other, "dropped")) // after the TTL
	})
}

// A caller that waits for the end of a lock still uses the lock, even if the lock itself is
// out of sight.
func TestWaitingForTheEndKeepsTheLock(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		late := b.lock(lk, "done late")
		time.Sleep(6 * time.Second) // past the first renewal
		waits := []<-chan struct{}{late.Done(), b.lock(lk, "done").Done(), b.lock(lk, "context").Context(b.Context()).Done()}
		for range 3 {
			time.Sleep(6 * time.Second)
			synctest.Wait()
			runtime.GC()
			runtime.GC()
		}
		for i, key := range []string{"done late", "done", "context"} {
			select {
			case <-waits[i]:
				b.Errorf("%q was lost", key)
			default:
			}
			if _, err := other.TryLock(b.Context(), key); !errors.Is(err, ErrHeld) {
				b.Errorf("%q: %v, want ErrHeld", key, err)
			}
		}
	})
}
