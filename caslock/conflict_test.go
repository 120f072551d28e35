package caslock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
)

// A process returns to a key that another process has used meanwhile. The first swap is refused.
// If the refusal has the record, the process reads nothing.
func TestRefusalWithTheRecord(t *testing.T) {
	t.Parallel()
	silent, tells := newMemory(), newMemory()
	for what, c := range map[string]struct {
		memory   *memory
		register caslock.Register
		reads    int
	}{
		"silent": {silent, silent, 1},
		"tells":  {tells, &telling{tells}, 0},
	} {
		one, other := caslock.New(c.register, nil), caslock.New(c.register, nil)
		defer one.Close()
		defer other.Close()
		use := func(s *caslock.Store) uint64 {
			t.Helper()
			claim := driver.Claim{Key: "key", ID: "id", TTL: time.Minute, Weight: driver.MaxWeight, Limit: driver.MaxWeight}
			g, err := s.Acquire(t.Context(), driver.Ask{Claim: claim})
			if err != nil || !g.OK {
				t.Fatalf("%s: %+v, %v", what, g, err)
			}
			if errs := s.Release(t.Context(), []driver.Release{{Claim: claim}}); errs != nil {
				t.Fatalf("%s: %v", what, errs)
			}
			return g.Fence
		}
		before := use(one)
		middle := use(other)
		reads, swaps := c.memory.reads, c.memory.swaps
		after := use(one)
		if reads, swaps = c.memory.reads-reads, c.memory.swaps-swaps; reads != c.reads || swaps != 3 {
			t.Errorf("%s: %d reads and %d swaps, want %d and 3", what, reads, swaps, c.reads)
		}
		if before >= middle || middle >= after {
			t.Errorf("%s: tokens %d, %d, %d", what, before, middle, after)
		}
	}
}

// A busy register has a clock, and another process changes the record before swaps of this process.
type busy struct {
	*memory
	refusals int // of the next swaps
	silent   int // of the next swaps, which have no answer

	asked   int // how often Now was called
	refused time.Time
	rested  func(pause time.Duration)
}

func (b *busy) Now(context.Context) (time.Time, error) {
	b.asked++
	return time.Now(), nil
}

func (b *busy) Read(ctx context.Context, key string) (caslock.Record, error) {
	if !b.refused.IsZero() {
		b.rested(time.Since(b.refused))
	}
	return b.memory.Read(ctx, key)
}

func (b *busy) Swap(ctx context.Context, key, old string, data []byte, keep time.Duration) (string, error) {
	time.Sleep(2 * time.Millisecond)
	if b.silent > 0 {
		b.silent--
		return "", errLost
	}
	if b.refusals > 0 {
		b.refusals--
		b.refused = time.Now()
		return "", caslock.ErrConflict
	}
	return b.memory.Swap(ctx, key, old, data, keep)
}

// A call whose swaps are refused asks for the time once, and pauses for an eighth of the time that it
// has left at most.
func TestBusyKey(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			b := &busy{memory: newMemory()}
			other := caslock.New(b, nil)
			defer other.Close()
			read := driver.Ask{Claim: driver.Claim{Key: "k", ID: "other", TTL: time.Minute, Weight: 1, Limit: driver.MaxWeight}}
			if g, err := other.Acquire(t.Context(), read); err != nil || !g.OK {
				t.Fatalf("%+v, %v", g, err)
			}

			s := caslock.New(b, nil)
			defer s.Close()
			b.asked, b.refusals = 0, 1<<30
			ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
			defer cancel()
			end, _ := ctx.Deadline()
			b.rested = func(pause time.Duration) {
				if most := end.Sub(b.refused) / 8; pause > most {
					t.Errorf("a pause of %v, with %v left", pause, end.Sub(b.refused))
				}
			}
			read.ID = "id"
			_, err := s.Acquire(ctx, read)
			if !errors.Is(err, driver.ErrUnwritten) || !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if b.asked != 1 {
				t.Errorf("asked for the time %d times, want 1", b.asked)
			}
		})
	}
}

// A waiter whose swaps are all refused has no place in the queue. But the waiter has read who holds the
// key, and the refusal names the holder.
func TestBusyQueue(t *testing.T) {
	for doubt := range 2 {
		synctest.Test(t, func(t *testing.T) {
			b := &busy{memory: newMemory(), rested: func(time.Duration) {}}
			other, s := caslock.New(b, nil), caslock.New(b, nil)
			defer other.Close()
			defer s.Close()
			holder := driver.Ask{Claim: claim("k", "other")}
			holder.Owner = "the holder"
			if g, err := other.Acquire(t.Context(), holder); err != nil || !g.OK {
				t.Fatalf("%+v, %v", g, err)
			}
			waiter := driver.Ask{Claim: claim("k", "id"), Wait: true}
			if b.silent = doubt; doubt > 0 {
				if _, err := s.Acquire(t.Context(), waiter); !errors.Is(err, errLost) {
					t.Fatal(err)
				}
			}
			b.refusals = 1 << 30
			ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
			defer cancel()
			g, err := s.Acquire(ctx, waiter)
			switch {
			case doubt > 0 && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%+v, %v; want an error, since an earlier swap may still be carried out", g, err)
			case doubt == 0 && (err != nil || g.OK || g.Holder.Owner != "the holder" || g.Kept != 0):
				t.Errorf("%+v, %v; want a refusal that names the holder, and no place", g, err)
			}
		})
	}
}

// If the record is gone after a refused swap, the token depends on the time, which is asked for again.
func TestRecordGoneAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{memory: newMemory()}
		other := caslock.New(b, nil)
		defer other.Close()
		acquire(t, other, "other", false)
		other.Release(t.Context(), []driver.Release{{Claim: claim("k", "other")}})

		b.rested = func(time.Duration) { clear(b.records) }
		s := caslock.New(b, nil)
		defer s.Close()
		b.asked, b.refusals = 0, 1
		g := acquire(t, s, "id", false)
		if b.asked != 2 || g.Fence < uint64(b.refused.UnixMicro()) {
			t.Errorf("asked for the time %d times, token %d", b.asked, g.Fence)
		}
	})
}
