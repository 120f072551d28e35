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
func TestOnce(t *testing.T) {
	worlds.Run(t, 0.05, 30, func(t *testing.T, seed uint64) *World { return Above(t, seed, effects, "records") })
}

// TestElect runs the leaders of package elect.
func TestElect(t *testing.T) {
	worlds.Run(t, 0.05, 30, func(t *testing.T, seed uint64) *World { return Above(t, seed, leaders) })
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
	*Stage
	far *once.Memory

	mu      sync.Mutex
	runs    int
	results map[string][]byte
}

// effects are goroutines that each want effects done. All callers get the same result. When
// a caller has got the result, the effect does not run again. When the faults are over,
// every effect is done in time.
func effects(s *Stage) {
	l := &ledger{Stage: s, far: new(once.Memory), results: make(map[string][]byte)}
	s.Start = func(p *Process) {
		store := records{p.Link("records"), l.far}
		for n := range 2 {
			p.Go(fmt.Sprint(n+1), func(r *Routine) { l.work(r, store) })
		}
	}
}

const mostEffects = 10

func (l *ledger) work(r *Routine, store once.Records) {
	for l.Faulty() && !r.P.ended() {
		r.Sleep(r.Upto(l.TTL))
		_ = l.want(r, store, fmt.Sprint("e", r.Rand.IntN(mostEffects)), r.Upto(6*l.TTL))
	}
	r.Sleep(l.Calm() - l.World.Now())
	for _, n := range r.Rand.Perm(mostEffects) {
		if r.P.ended() || l.World.ctx.Err() != nil {
			return
		}
		key := fmt.Sprint("e", n)
		if err := l.want(r, store, key, l.bound()); err != nil && l.World.ctx.Err() == nil && !r.P.ended() {
			l.World.Judge.Fail(key, "progress", r.P.Name, fmt.Sprintf("is not done within %v, though all is well: %v", l.bound(), err))
		}
	}
}

// bound is how long a caller waits for an effect when there are no faults: for one run by
// another caller, and for one of its own. A waiting caller may miss a wake-up of a process
// that polls.
func (l *ledger) bound() time.Duration { return 2*l.longest() + 2*time.Second }

// longest is the longest run of an effect.
func (l *ledger) longest() time.Duration { return l.TTL * 3 / 2 }

// want asks for an effect.
func (l *ledger) want(r *Routine, store once.Records, key string, d time.Duration) error {
	ctx, cancel := r.Context(d)
	defer cancel()
	r.Event(Event{Step: Begin, Call: "once", Key: key}, nil)
	result, err := once.Runner{Locks: r.P.Locker, Records: store}.Do(ctx, key, func(context.Context) ([]byte, error) {
		return l.run(r, key)
	})
	r.gate()
	r.Event(Event{Step: End, Call: "once", Key: key}, recordedAs{result, err})
	if err == nil {
		r.P.w.Count.add(&r.P.w.Count.Grants)
		l.got(r, key, result)
	}
	return err
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
	r.Event(Event{Step: Look, Call: "effect", Key: key}, string(result))
	if done {
		r.P.w.Judge.Fail(key, "once", r.P.Name, "an effect runs again whose result somebody has got")
	}
	r.Sleep(r.Upto(l.longest()))
	if r.P.w.Now() < l.Calm() && r.Rand.IntN(8) == 0 {
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
	*Stage
	mu     sync.Mutex
	leads  []*lead
	vacant time.Duration // since when nobody has led
}

// leaders campaign for one job. When a leader begins, the contexts of all others have
// ended; while no link has faults, no other leader is at work. When the faults are over,
// the job is never without a leader for long.
func leaders(s *Stage) {
	all := &reign{Stage: s}
	end := s.Calm() + 15*s.TTL
	s.World.After(end, func() { all.filled("nobody") })
	s.Start = func(p *Process) {
		p.Go("1", func(r *Routine) {
			ctx, cancel := r.Context(end + s.TTL - s.World.Now())
			defer cancel()
			_ = elect.Run(ctx, p.Locker, "job", func(ctx context.Context) error { return all.lead(ctx, r) },
				elect.MaxTerm(4*s.TTL), elect.Grace(s.TTL))
		})
	}
}

// vacancy is the longest time without a leader. A leader that steps down stands aside for
// two seconds, and all candidates may do so.
const vacancy = 2*time.Second + 500*time.Millisecond

// filled checks whether the job was without a leader for too long until now.
func (a *reign) filled(next string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fills(next)
}

// fills is filled with mu held.
func (a *reign) fills(next string) {
	idle := a.World.Now() - max(a.vacant, a.Calm())
	if len(a.leads) > 0 || idle < 0 || a.World.ctx.Err() != nil {
		return
	}
	a.World.Count.longest(idle)
	if idle > vacancy {
		a.World.Judge.Fail("job", "progress", next, fmt.Sprintf("the job was without a leader for %v", idle))
	}
}

// lead is the function of a leader.
func (a *reign) lead(ctx context.Context, r *Routine) error {
	r.gate()
	lock, _ := holdfast.FromContext(ctx)
	me := &lead{r.P, lock, ctx}
	a.begin(me, r)
	defer a.end(me, r)
	for end := a.World.Now() + r.Upto(10*a.TTL); a.World.Now() < end && ctx.Err() == nil; {
		r.Sleep(r.Upto(a.TTL / 2))
	}
	r.Sleep(r.Upto(a.TTL / 2)) // A leader does not stop at once.
	return elect.ErrStepDown
}

func (a *reign) begin(me *lead, r *Routine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Event(Event{Step: Begin, Call: "lead", Key: "job", Token: me.lock.Fence()}, nil)
	a.World.Count.add(&a.World.Count.Grants)
	a.fills(r.P.Name)
	for _, o := range a.leads {
		open := (a.Still() || o.ctx.Err() == nil) && !o.p.unaware() && !o.p.machine.drowsy()
		if open && me.lock.Err() == nil && !a.World.Judge.Unsure() {
			a.World.Judge.Fail("job", "elect", r.P.Name, fmt.Sprintf("leads while %s is at work: %v", o.p.Name, context.Cause(o.ctx)))
		}
	}
	a.leads = append(a.leads, me)
}

func (a *reign) end(me *lead, r *Routine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leads = slices.DeleteFunc(a.leads, func(o *lead) bool { return o == me })
	a.vacant = a.World.Now()
	r.Event(Event{Step: End, Call: "lead", Key: "job"}, context.Cause(me.ctx))
}
