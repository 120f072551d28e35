package sim

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// The first call over a link that is new, or whole again, is slow.
func TestSlowStart(t *testing.T) {
	const start = 10 * time.Second
	Run(t, 1, Memory(), func(w *World) {
		l := w.Process("a", nil).Link("store")
		l.Faults = Faults{Start: start}
		l.Plan = []Window{
			{From: time.Minute, To: 2 * time.Minute, Way: Back},
			{From: 3 * time.Minute, To: 4 * time.Minute, Way: Out, Holds: true},
		}
		call := func(slow bool, when string) {
			t.Helper()
			began := time.Now()
			if _, err := Send(w.Context(), l, "call", "", "", func() int { return 0 }); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if took := time.Since(began); (took > 0) != slow || took >= start {
				t.Errorf("%s: a call takes %v, slow: %v", when, took, slow)
			}
		}
		call(true, "the link is new")
		call(false, "there is a connection")
		time.Sleep(2*time.Minute - w.Now())
		call(true, "the link is whole again")
		call(false, "there is a connection again")
		time.Sleep(4*time.Minute - w.Now())
		call(false, "the link has held messages back")
		l.Cut(Both)
		l.Cut(0)
		call(true, "the link is mended")
		l.Cut(0)
		call(false, "the link was not cut")
	})
}

// hopeful counts the TTL of a grant from the answer. That is a mistake, which does no harm
// while answers come at once.
type hopeful struct{ driver.Store }

func (h hopeful) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	sent := time.Now()
	g, err := h.Store.Acquire(ctx, a)
	g.TTL += time.Since(sent)
	return g, err
}

// hopefuls has all processes use a hopeful store.
type hopefuls struct{ Store }

func (s hopefuls) Connect(p *Process) driver.Store {
	store := s.Store.Connect(p)
	inspector, _ := store.(driver.Inspector)
	return assemble(hopeful{store}, nil, nil, inspector)
}

// The judge finds a mistake that shows only when connections are slow to begin with.
func TestSlowStartIsJudged(t *testing.T) {
	found := func(seed uint64, start time.Duration) (wrong []string) {
		synctest.Test(t, func(t *testing.T) {
			w := New(t, seed, func(w *World) Store { return hopefuls{Serve()(w)} })
			defer w.End()
			for _, name := range []string{"a", "b"} {
				p := w.Process(name, &holdfast.Options{TTL: time.Second, Poll: 20 * time.Millisecond})
				p.Link("store").Faults = Faults{Start: start}
				p.Go("1", func(r *Routine) {
					if held, err := r.Lock(w.Context(), Want{Key: "k", NoRenew: true}); err == nil {
						held.Hold(2 * time.Second)
						_ = held.Unlock()
					}
				})
			}
			w.Wait()
			wrong = w.Judge.Wrong()
		})
		return wrong
	}
	for seed := range uint64(20) {
		if wrong := found(seed, 0); len(wrong) > 0 {
			t.Errorf("seed %d: without slow starts the judge finds %q", seed, wrong)
		}
	}
	for seed := range uint64(20) {
		if wrong := found(seed, 150*time.Millisecond); len(wrong) > 0 && strings.HasPrefix(wrong[0], "exclusion:") {
			t.Logf("found by seed %d", seed)
			return
		}
	}
	t.Error("the judge does not find a lock that counts from the answer of a slow call")
}
