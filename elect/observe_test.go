package elect

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

func TestObserve(t *testing.T) {
	simulate(t, func(b *bench) {
		type event struct {
			note string
			err  error
		}
		events := make(chan event, 100)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for leader, err := range Observe(b.ctx, b.locks, job, 0) {
				events <- event{leader.Note, err}
			}
		}()
		expect := func(want string, wantErr error) {
			b.Helper()
			synctest.Wait()
			nobody := event{}
			got := make([]event, len(events))
			for i := range got {
				got[i] = <-events
			}
			// Between two terms, nobody leads: an observer that asks just then sees it.
			if want != "" && len(got) == 2 && got[0] == nobody {
				got = got[1:]
			}
			if len(got) != 1 || got[0].note != want || !errors.Is(got[0].err, wantErr) {
				b.Errorf("observed %v, want %q, %v", got, want, wantErr)
			}
		}
		expect("", nil)
		b.run(lead, Note("one"), MaxTerm(time.Hour))
		after(time.Minute)
		expect("one", nil)
		b.run(lead, Note("two"))
		after(time.Hour)
		expect("two", nil)
		b.store.cut.Store(true)
		after(5 * time.Second)
		expect("", errCut)
		b.store.cut.Store(false)
		after(time.Second)
		expect("two", nil)
		b.stop()
		<-done
	})
}

func TestObserveEnds(t *testing.T) {
	simulate(t, func(b *bench) {
		dumb := must.Get(holdfast.New(struct{ driver.Store }{memlock.New()}, nil))
		defer dumb.Close()
		closed := must.Get(holdfast.New(memlock.New(), nil))
		closed.Close()
		for _, test := range []struct {
			locks *holdfast.Locker
			job   string
			every time.Duration
			want  string
		}{
			{dumb, job, 0, errors.ErrUnsupported.Error()},
			{closed, job, 0, holdfast.ErrClosed.Error()},
			{b.locks, "", 0, "key"},
			{b.locks, job, 1, "every is 1ns"},
		} {
			n := 0
			for _, err := range Observe(b.ctx, test.locks, test.job, test.every) {
				if n++; err == nil || !strings.Contains(err.Error(), test.want) {
					b.Errorf("observed %v, want %q", err, test.want)
				}
			}
			if n != 1 {
				b.Errorf("%q: %d events", test.want, n)
			}
		}
	})
}

// An observer of a store that is silent is told so, by an error that is not that of its
// own context, which goes on.
func TestObserveSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := must.Get(holdfast.New(silent{memlock.New()}, nil))
		defer locks.Close()
		for _, err := range Observe(t.Context(), locks, job, 0) {
			if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("observed %v, want that the store has not answered", err)
			}
			break
		}
	})
}

// A silent store does not say who holds what.
type silent struct{ *memlock.Store }

func (silent) Holders(ctx context.Context, _ string) ([]driver.Holder, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
