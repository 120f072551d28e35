package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/elect"
	"github.com/holdfast-go/holdfast/once"
)

// TestOnce runs effects of package once, whose records are on a server too.
func TestOnce(t *testing.T) { seeds(t, 0.05, above(effects)) }

// TestElect runs the leaders of package elect.
func TestElect(t *testing.T) { seeds(t, 0.05, above(leaders)) }

// above makes worlds for what is built on locks: two to four processes, of which one may be
// stopped now and then.
func above(job func(w *World, ttl, length time.Duration, still bool) func(p *Process)) func(*testing.T, uint64) *World {
	return func(t *testing.T, seed uint64) *World {
		return Run(t, seed, Memory(), func(w *World) {
			r := w.Rand("world")
			ttl := pick(r, time.Second, 3*time.Second)
			length := 30 * ttl
			still := r.IntN(3) == 0
			start := job(w, ttl, length, still)
			for i := range 2 + r.IntN(3) {
				p := w.Process(string(rune('a'+i)), &holdfast.Options{TTL: ttl})
				p.Link("records")
				for _, l := range p.Links() {
					l.Faults = pick(r, lossy, slow, hostile)(ttl)
					l.Plan = windows(w.Rand("cuts", p.Name, l.name), ttl, length)
					if still {
						l.Faults, l.Plan = quiet(ttl), nil
					}
				}
				start(p)
			}
			if victim := w.Processes()[0]; !still && r.IntN(2) == 0 {
				w.Process("god", nil).Go("1", func(r *Routine) {
					for w.Now() < length && w.ctx.Err() == nil {
						r.Sleep(r.Upto(4 * ttl))
						r.halts(victim, 2*ttl)
					}
				})
			}
			w.Wait()
			w.Count.Seeds, w.Count.Virtual = 1, w.Now()
		})
	}
}

// records are once.Records behind a link.
type records struct {
	link *Link
	far  *once.Memory
}

// Load implements [once.Records].
func (r records) Load(ctx context.Context, key string) (once.Record, error) {
	return ask(ctx, r.link, "load", key, func() (once.Record, error) { return r.far.Load(context.Background(), key) })
}

// Begin implements [once.Records].
func (r records) Begin(ctx context.Context, key string, token uint64, print string, keep time.Duration) (once.Record, error) {
	return ask(ctx, r.link, "begin", key, func() (once.Record, error) {
		return r.far.Begin(context.Background(), key, token, print, keep)
	})
}

// Finish implements [once.Records].
func (r records) Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	return r.end(ctx, "finish", key, func() error { return r.far.Finish(context.Background(), key, token, result, keep) })
}

// Forget implements [once.Records].
func (r records) Forget(ctx context.Context, key string, token uint64) error {
	return r.end(ctx, "forget", key, func() error { return r.far.Forget(context.Background(), key, token) })
}

func (r records) end(ctx context.Context, call, key string, do func() error) error {
	_, err := ask(ctx, r.link, call, key, func() (string, error) { return "done", do() })
	return err
}

// A ledger is what the effects of a world have shown.
type ledger struct {
	far *once.Memory
	ttl time.Duration

	mu      sync.Mutex
	runs    int
	results map[string][]byte
}

// effects are goroutines that each want some effects done. All get the same result, and once
// one has got it, the effect does not run again.
func effects(w *World, ttl, length time.Duration, _ bool) func(p *Process) {
	l := &ledger{far: new(once.Memory), ttl: ttl, results: make(map[string][]byte)}
	return func(p *Process) {
		store := records{p.Link("records"), l.far}
		for n := range 2 {
			p.Go(fmt.Sprint(n+1), func(r *Routine) {
				for w.Now() < length && w.ctx.Err() == nil {
					r.Sleep(r.Upto(ttl))
					l.want(r, store)
				}
			})
		}
	}
}

// want asks for an effect.
func (l *ledger) want(r *Routine, store once.Records) {
	key := fmt.Sprint("e", r.Rand.IntN(10))
	ctx, cancel := r.Context(r.Upto(6 * l.ttl))
	defer cancel()
	r.event(Event{Step: Begin, Call: "once", Key: key}, nil)
	result, err := once.Do(ctx, r.P.Locker, store, key, 24*time.Hour, func(context.Context) ([]byte, error) {
		return l.run(r, key)
	})
	r.gate()
	r.event(Event{Step: End, Call: "once", Key: key}, recordedAs{result, err})
	if err == nil {
		r.P.w.Count.add(&r.P.w.Count.Grants)
		l.got(r, key, result)
	}
}

// recordedAs is a result as the trace shows it.
type recordedAs struct {
	result []byte
	err    error
}

func (r recordedAs) String() string { return fmt.Sprintf("%q, %v", r.result, r.err) }

// run is the effect itself.
func (l *ledger) run(r *Routine, key string) ([]byte, error) {
	l.mu.Lock()
	_, done := l.results[key]
	l.runs++
	result := fmt.Appendf(nil, "run %d", l.runs)
	l.mu.Unlock()
	r.event(Event{Step: Look, Call: "effect", Key: key}, string(result))
	if done {
		r.P.w.Judge.Fail(key, "once", r.P.Name, "an effect runs again whose result somebody has got")
	}
	r.Sleep(r.Upto(l.ttl * 3 / 2))
	if r.Rand.IntN(8) == 0 {
		return nil, errors.New("the effect has failed")
	}
	return result, nil
}

func (l *ledger) got(r *Routine, key string, result []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, known := l.results[key]; known && !bytes.Equal(first, result) {
		r.P.w.Judge.Fail(key, "once", r.P.Name, fmt.Sprintf("got %q, and somebody before %q", result, first))
	}
	l.results[key] = result
}

// A lead is a leader whose function has not returned.
type lead struct {
	p    *Process
	lock *holdfast.Lock
	ctx  context.Context
}

// A reign is all leaders of a world.
type reign struct {
	w     *World
	ttl   time.Duration
	still bool

	mu    sync.Mutex
	leads []*lead
}

// leaders campaign for one job. When one begins, the contexts of all others have ended; and
// while no link has faults, no other is at work.
func leaders(w *World, ttl, length time.Duration, still bool) func(p *Process) {
	all := &reign{w: w, ttl: ttl, still: still}
	return func(p *Process) {
		p.Go("1", func(r *Routine) {
			ctx, cancel := r.Context(length)
			defer cancel()
			_ = elect.Run(ctx, p.Locker, "job", func(ctx context.Context) error { return all.lead(ctx, r) },
				elect.MaxTerm(4*ttl), elect.Grace(ttl))
		})
	}
}

// lead is the function of a leader.
func (a *reign) lead(ctx context.Context, r *Routine) error {
	r.gate()
	lock, _ := holdfast.FromContext(ctx)
	me := &lead{r.P, lock, ctx}
	a.begin(me, r)
	defer a.end(me, r)
	for end := a.w.Now() + r.Upto(10*a.ttl); a.w.Now() < end && ctx.Err() == nil; {
		r.Sleep(r.Upto(a.ttl / 2))
	}
	r.Sleep(r.Upto(a.ttl / 2)) // It does not stop at once.
	return elect.ErrStepDown
}

func (a *reign) begin(me *lead, r *Routine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.event(Event{Step: Begin, Call: "lead", Key: "job", Token: me.lock.Fence()}, nil)
	a.w.Count.add(&a.w.Count.Grants)
	for _, o := range a.leads {
		if (a.still || o.ctx.Err() == nil) && !o.p.unaware() && !o.p.machine.drowsy() && me.lock.Err() == nil {
			a.w.Judge.Fail("job", "elect", r.P.Name, fmt.Sprintf("leads while %s is at work: %v", o.p.Name, context.Cause(o.ctx)))
		}
	}
	a.leads = append(a.leads, me)
}

func (a *reign) end(me *lead, r *Routine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leads = slices.DeleteFunc(a.leads, func(o *lead) bool { return o == me })
	r.event(Event{Step: End, Call: "lead", Key: "job"}, context.Cause(me.ctx))
}
