package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// counts are how many hold and wait, as a Trace tells it.
type counts struct{ held, waiting atomic.Int64 }

func (c *counts) trace() *Trace {
	add := func(to *atomic.Int64, n int64) func(Event) { return func(Event) { to.Add(n) } }
	return JoinTraces(
		&Trace{Wanted: add(&c.waiting, 1), Locked: add(&c.waiting, -1), GaveUp: add(&c.waiting, -1)},
		&Trace{Locked: add(&c.held, 1), Lost: add(&c.held, -1), Unlocked: add(&c.held, -1)},
	)
}

func TestTraceTellsTheLifeOfALock(t *testing.T) {
	simulate(t, func(b *bench) {
		events := make(chan string, 20)
		tell := func(name string) func(Event) {
			return func(e Event) { events <- fmt.Sprintf("%s %s %v", name, e.Key, e.Err != nil) }
		}
		lk := b.open(&Options{Prefix: "p/", Trace: &Trace{
			Wanted: tell("wanted"), GaveUp: tell("gave up"),
			Tried: tell("tried"), Locked: tell("locked"), Renewed: tell("renewed"),
			AtRisk: tell("at risk"), Lost: tell("lost"), Unlocked: tell("unlocked"),
		}})
		l := b.lock(lk, "k")
		if _, err := b.open(nil).TryLock(b.Context(), "p/k"); !errors.Is(err, ErrHeld) {
			b.Error(err)
		}
		time.Sleep(6 * time.Second)
		b.unlock(l)
		l = b.lock(b.open(nil), "p/k")
		if _, err := lk.TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Error(err)
		}
		b.unlock(l)
		if _, err := lk.Lock(b.Context(), ""); !errors.Is(err, ErrInvalidKey) {
			b.Error(err)
		}
		synctest.Wait()
		close(events)
		var got []string
		for e := range events {
			got = append(got, e)
		}
		want := []string{"wanted k false", "locked k false", "renewed k false", "unlocked k false",
			"wanted k false", "tried k true", "gave up k true"}
		if !slices.Equal(got, want) {
			b.Errorf("events %q, want %q", got, want)
		}
	})
}

type callNumber struct{}

// TestTraceContext hands locks from call to call, and sees to it that each event
// comes with the context of its own.
func TestTraceContext(t *testing.T) {
	simulate(t, func(b *bench) {
		var mu sync.Mutex
		calls := make(map[uint64]any) // by token
		unlocked := 0
		lk := b.open(&Options{Trace: &Trace{
			Locked: func(e Event) {
				mu.Lock()
				defer mu.Unlock()
				calls[e.Fence] = e.Context.Value(callNumber{})
			},
			Unlocked: func(e Event) {
				mu.Lock()
				defer mu.Unlock()
				unlocked++
				if got := e.Context.Value(callNumber{}); got == nil || got != calls[e.Fence] {
					b.Errorf("token %d was locked by call %v and unlocked by %v", e.Fence, calls[e.Fence], got)
				}
			},
		}})
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx := context.WithValue(b.Context(), callNumber{}, i)
				b.unlock(b.lockCtx(ctx, lk, "k"))
			})
		}
		wg.Wait()
		if unlocked != 50 {
			b.Errorf("%d locks were unlocked, want 50", unlocked)
		}
	})
}

// TestTraceOfClose: who counts the locks that are held is told of those that Close
// ends, and which of them the store may still keep.
func TestTraceOfClose(t *testing.T) {
	for _, fails := range []bool{false, true} {
		simulate(t, func(b *bench) {
			var all counts
			var failed []error
			lk := must.Get(New(unclosed{b.store}, &Options{Trace: JoinTraces(all.trace(), nil, &Trace{
				Unlocked: func(e Event) { failed = append(failed, e.Err) },
			})}))
			b.lock(lk, "a")
			b.lock(lk, "b")
			go lk.Lock(b.Context(), "a")
			synctest.Wait()
			if all.held.Load() != 2 || all.waiting.Load() != 1 {
				b.Errorf("%d are held, %d wait; want 2 and 1", all.held.Load(), all.waiting.Load())
			}
			if fails {
				b.store.set(func(f *faulty) { f.release = hangsToRelease })
			}
			if err := lk.Close(); (err != nil) != fails {
				b.Errorf("Close: %v", err)
			}
			synctest.Wait()
			if all.held.Load() != 0 || all.waiting.Load() != 0 {
				b.Errorf("after Close %d are held, %d wait", all.held.Load(), all.waiting.Load())
			}
			if len(failed) != 2 || (failed[0] != nil) != fails || (failed[1] != nil) != fails {
				b.Errorf("Close told of %v, failing: %v", failed, fails)
			}
		})
	}
}

func hangsToRelease(ctx context.Context, _ []driver.Release, _ func() []error) []error {
	<-ctx.Done()
	return []error{ctx.Err(), ctx.Err()}
}

func TestJoinTraces(t *testing.T) {
	var got []string
	add := func(name string) func(Event) { return func(e Event) { got = append(got, name+" "+e.Key) } }
	joined := JoinTraces(&Trace{Locked: add("first"), Lost: add("lost")}, nil, &Trace{Locked: add("second")})
	joined.Locked(Event{Key: "a"})
	joined.Lost(Event{Key: "b"})
	if want := []string{"first a", "second a", "lost b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if joined.Tried != nil || JoinTraces().Locked != nil {
		t.Error("a hook that nobody has is there")
	}
}

func TestLogTrace(t *testing.T) {
	simulate(t, func(b *bench) {
		var text strings.Builder
		log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		lk := b.open(&Options{Owner: "web-1", Trace: LogTrace(log)})
		l := b.lock(lk, "k")
		fence := l.Fence()
		if _, err := b.open(&Options{Trace: LogTrace(nil)}).TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Error(err)
		}
		time.Sleep(time.Second)
		if err := lk.Break(b.Context(), "k", l.ID()); err != nil {
			b.Error(err)
		}
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		for i, want := range []string{
			`level=DEBUG msg="lock is wanted" key=k owner=web-1`,
			fmt.Sprintf(`level=INFO msg="lock is held" key=k owner=web-1 fence=%d`, fence),
			fmt.Sprintf(`level=WARN msg="lock is lost" key=k owner=web-1 fence=%d held=1s error="lock is lost: broken"`, fence),
		} {
			if i >= len(lines) || !strings.HasSuffix(lines[i], want) {
				b.Errorf("the log is %q; want line %d to end in %q", lines, i, want)
			}
		}
	})
}
