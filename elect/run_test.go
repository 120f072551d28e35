package elect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

// breakLeader takes the lock away from the leader.
func (b *bench) breakLeader() {
	b.Helper()
	holders, err := b.locks.Holders(b.ctx, job)
	if err != nil {
		b.Fatal(err)
	}
	if err := b.locks.Break(b.ctx, job, leading(holders).ID); err != nil {
		b.Fatal(err)
	}
}

func TestOneLeads(t *testing.T) {
	simulate(t, func(b *bench) {
		other := must.Get(holdfast.New(b.store.Store, nil))
		defer other.Close()
		var tokens []uint64
		work := func(ctx context.Context) error {
			lock, ok := holdfast.FromContext(ctx)
			if !ok || lock.Key() != job {
				b.Error("the context carries no lock of the job")
			}
			tokens = append(tokens, lock.Fence())
			return lead(ctx)
		}
		first := b.run(work)
		b.expect("alone", first, 1, 1)
		second := &bench{T: b.T, store: b.store, locks: other}
		second.ctx, second.stop = context.WithCancel(b.Context())
		next := second.run(work)
		after(time.Hour)
		b.expect("first", first, 1, 1)
		b.expect("second", next, 0, 0)

		b.stop()
		if err := <-first.result; !errors.Is(err, context.Canceled) {
			b.Errorf("a Run whose context has ended returns %v", err)
		}
		after(time.Second)
		b.expect("second, after the first", next, 1, 1)
		if len(tokens) != 2 || tokens[0] >= tokens[1] {
			b.Errorf("tokens %v must grow", tokens)
		}
		second.stop()
		<-next.result
	})
}

func TestResultEndsRun(t *testing.T) {
	boom := errors.New("boom")
	for _, want := range []error{nil, boom} {
		simulate(t, func(b *bench) {
			r := b.run(func(context.Context) error { return want })
			if err := <-r.result; !errors.Is(err, want) {
				b.Errorf("Run returned %v, want %v", err, want)
			}
			if holders, err := b.locks.Holders(b.ctx, job); err != nil || len(holders) > 0 {
				b.Errorf("after Run there are %v, %v", holders, err)
			}
		})
	}
}

// If fn returns after its term has ended, Run goes on, unless the context of Run has ended.
func TestLossCampaignsAgain(t *testing.T) {
	simulate(t, func(b *bench) {
		boom := errors.New("boom")
		answers := []error{nil, errors.Join(boom, ErrUnfit), ErrStepDown} // that of another election
		r := b.run(func(ctx context.Context) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), holdfast.ErrLost) && b.ctx.Err() == nil {
				b.Errorf("the cause is %v", context.Cause(ctx))
			}
			answer := answers[0]
			answers = answers[1:]
			return answer
		})
		b.expect("at first", r, 1, 1)
		b.breakLeader()
		after(patience)
		b.expect("after a loss", r, 2, 1)
		b.reported(r, holdfast.ErrLost)
		b.breakLeader()
		after(patience)
		b.expect("after a loss and an error", r, 3, 1)
		b.reported(r, boom)
		b.stop()
		if err := <-r.result; !errors.Is(err, ErrStepDown) {
			b.Errorf("Run returned %v, want what fn returned", err)
		}
	})
}

// A loss that shows only when the lock is given back is one as well: another may
// have led meanwhile.
func TestLossAtTheEnd(t *testing.T) {
	simulate(t, func(b *bench) {
		silent := &bench{T: b.T, ctx: b.ctx, locks: must.Get(holdfast.New(struct{ driver.Store }{b.store.Store}, nil))}
		defer silent.locks.Close()
		terms := 0
		r := silent.run(func(context.Context) error {
			if terms++; terms == 1 {
				b.breakLeader()
			}
			return nil
		})
		if err := <-r.result; err != nil || terms != 2 {
			b.Errorf("Run returned %v after %d terms, want two", err, terms)
		}
		b.reported(r, holdfast.ErrLost)
	})
}

// Terms that end as soon as they begin do not follow each other in a hurry.
func TestShortTerms(t *testing.T) {
	simulate(t, func(b *bench) {
		r := b.run(func(ctx context.Context) error {
			b.breakLeader()
			return lead(ctx)
		})
		after(time.Minute)
		if n := r.leads.Load(); n < 60 || n > 130 {
			b.Errorf("%d terms in a minute", n)
		}
	})
}

// A leader that ignores the end of its context keeps its own process from
// campaigning, and nobody else.
func TestStuckLeader(t *testing.T) {
	simulate(t, func(b *bench) {
		let := make(chan struct{})
		r := b.run(func(ctx context.Context) error { <-let; return nil })
		b.expect("at first", r, 1, 1)
		b.breakLeader()
		after(time.Hour)
		b.expect("after the loss", r, 1, 1)
		b.reported(r, ErrStuck)
		if _, err := b.locks.TryLock(b.ctx, job); err != nil {
			b.Errorf("another cannot lead: %v", err)
		}
		close(let)
		after(time.Minute)
		b.expect("while another leads", r, 1, 0)
	})
}

func TestGrace(t *testing.T) {
	simulate(t, func(b *bench) {
		let := make(chan struct{})
		r := b.run(func(ctx context.Context) error { <-let; return nil }, Grace(time.Minute), MaxTerm(time.Hour))
		after(time.Hour + time.Minute - time.Second)
		if _, err := b.locks.TryLock(b.ctx, job); !errors.Is(err, holdfast.ErrHeld) {
			b.Errorf("the lock of a leader in its grace: %v", err)
		}
		after(time.Second)
		if _, err := b.locks.TryLock(b.ctx, job); err != nil {
			b.Errorf("the lock of a leader after its grace: %v", err)
		}
		b.reported(r, ErrStuck)
		close(let)
		b.reported(r, ErrStepDown)
	})
}

// A function that returns in time is not stuck, though it has no grace at all.
func TestNoGrace(t *testing.T) {
	for range 20 {
		simulate(t, func(b *bench) {
			r := b.run(func(context.Context) error { return nil }, Grace(0))
			if err := <-r.result; err != nil || len(r.reports) > 0 {
				b.Fatalf("Run returned %v and has reported %v", err, <-r.reports)
			}
		})
	}
}

func TestStepDown(t *testing.T) {
	simulate(t, func(b *bench) {
		r := b.run(func(context.Context) error { return ErrStepDown })
		b.expect("at first", r, 1, 0)
		after(aside - 1)
		b.expect("aside", r, 1, 0)
		after(1)
		b.expect("again", r, 2, 0)
	})
}

// A waiting candidate leads before the leader that has stepped down leads again.
func TestHandOver(t *testing.T) {
	simulate(t, func(b *bench) {
		first := b.run(lead, MaxTerm(time.Minute))
		after(time.Second)
		second := b.run(lead)
		after(time.Minute)
		b.expect("who hands over", first, 1, 0)
		b.expect("who waits", second, 1, 1)
		b.reported(first, ErrStepDown)
		after(time.Hour)
		b.expect("who hands over", first, 1, 0)
	})
}

func TestPanicGivesBack(t *testing.T) {
	simulate(t, func(b *bench) {
		defer func() {
			if recover() == nil {
				b.Error("the panic is gone")
			}
			if _, err := b.locks.TryLock(b.ctx, job); err != nil {
				b.Error(err)
			}
		}()
		_ = Run(b.ctx, b.locks, job, func(context.Context) error { panic("oh") })
	})
}

// While the store is away, the leader is told in time, and asks again without haste.
func TestStoreAway(t *testing.T) {
	simulate(t, func(b *bench) {
		r := b.run(lead)
		after(time.Minute)
		b.store.cut.Store(true)
		after(ttl)
		b.expect("cut off", r, 1, 0)
		b.reported(r, errCut)
		after(10 * time.Minute)
		if n := len(r.reports); n == 0 || n > 300 {
			b.Errorf("%d campaigns in ten minutes", n)
		}
		b.store.cut.Store(false)
		after(ttl + patience)
		b.expect("back", r, 2, 1)
	})
}

func TestFinal(t *testing.T) {
	simulate(t, func(b *bench) {
		r := b.run(func(ctx context.Context) error {
			return Run(ctx, b.locks, job, lead)
		})
		if err := <-r.result; !errors.Is(err, holdfast.ErrDeadlock) {
			b.Errorf("Run within Run returned %v", err)
		}
		r = b.run(lead)
		after(time.Second)
		b.locks.Close()
		if err := <-r.result; !errors.Is(err, holdfast.ErrClosed) {
			b.Errorf("Run returned %v after Close", err)
		}
	})
}

func TestInput(t *testing.T) {
	simulate(t, func(b *bench) {
		none := func(context.Context) error { return nil }
		for want, run := range map[string]func() error{
			"key":               func() error { return Run(b.ctx, b.locks, "", lead) },
			"bytes":             func() error { return Run(b.ctx, b.locks, strings.Repeat("k", 10<<20), lead) },
			"TTL is 1ms":        func() error { return Run(b.ctx, b.locks, job, lead, TTL(time.Millisecond)) },
			"Note":              func() error { return Run(b.ctx, b.locks, job, lead, Note("\xff")) },
			"MaxTerm is 0s":     func() error { return Run(b.ctx, b.locks, job, lead, MaxTerm(0)) },
			"Grace is -1":       func() error { return Run(b.ctx, b.locks, job, lead, Grace(-1)) },
			"every of Check":    func() error { return Run(b.ctx, b.locks, job, lead, Check(0, none)) },
			"Check needs a fun": func() error { return Run(b.ctx, b.locks, job, lead, Check(time.Second, nil)) },
			"Run needs a fun":   func() error { return Run(b.ctx, b.locks, job, nil) },
		} {
			if err := run(); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
				b.Errorf("got %.500v, want a short ErrInvalid about %q", err, want)
			}
		}
	})
}
