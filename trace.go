package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Trace observes locks. Every function may be nil. The functions are called from the
// goroutine in which the event happens, must be quick, and must not call the Locker.
//
// Every Wanted is followed by one Locked or one GaveUp, and every Locked goes with one Lost
// or one Unlocked: counting them tells how many calls wait and how many locks are held. A
// lock that is lost at once may be Lost before it is Locked. A call with a bad key or
// option has no Wanted, and neither has a call that enters a lock again.
type Trace struct {
	Wanted   func(Event) // a call wants a lock
	Tried    func(Event) // the store was asked and did not grant; Err says why
	Locked   func(Event) // a caller has acquired a lock after Waited
	GaveUp   func(Event) // a call has ended without a lock after Waited; Err says why
	Renewed  func(Event) // the lease is renewed
	AtRisk   func(Event) // half of the validity is gone without a renewal; Err is the last failure
	Lost     func(Event) // the lock ended after Held without being unlocked; Err is its LostError
	Unlocked func(Event) // the lock was unlocked after Held; Err is nil if the store has confirmed it
}

// An Event is one step in the life of a lock.
type Event struct {
	Context context.Context // of the call that wanted the lock, ended or not; never nil
	Key     string          // without the prefix
	Owner   string
	Fence   uint64 // 0 if there is none yet
	Waited  time.Duration
	Held    time.Duration
	Err     error
}

// JoinTraces returns a Trace that passes every event to several traces, in the order given.
// A nil Trace is left out.
func JoinTraces(traces ...*Trace) *Trace {
	join := func(hook func(*Trace) func(Event)) func(Event) {
		var hooks []func(Event)
		for _, t := range traces {
			if t != nil && hook(t) != nil {
				hooks = append(hooks, hook(t))
			}
		}
		switch len(hooks) {
		case 0:
			return nil
		case 1:
			return hooks[0]
		}
		return func(e Event) {
			for _, tell := range hooks {
				tell(e)
			}
		}
	}
	return &Trace{
		Wanted:   join(func(t *Trace) func(Event) { return t.Wanted }),
		Tried:    join(func(t *Trace) func(Event) { return t.Tried }),
		Locked:   join(func(t *Trace) func(Event) { return t.Locked }),
		GaveUp:   join(func(t *Trace) func(Event) { return t.GaveUp }),
		Renewed:  join(func(t *Trace) func(Event) { return t.Renewed }),
		AtRisk:   join(func(t *Trace) func(Event) { return t.AtRisk }),
		Lost:     join(func(t *Trace) func(Event) { return t.Lost }),
		Unlocked: join(func(t *Trace) func(Event) { return t.Unlocked }),
	}
}

// timed reports whether a hook needs the duration of a wait.
func (t *Trace) timed() bool { return t.Tried != nil || t.Locked != nil || t.GaveUp != nil }

// lasts reports whether a hook needs the context of a held lock.
func (t *Trace) lasts() bool {
	return t.Locked != nil || t.Renewed != nil || t.AtRisk != nil || t.Lost != nil || t.Unlocked != nil
}

func emit(hook func(Event), e Event) {
	if hook != nil {
		hook(e)
	}
}

func (a *attempt) event() Event {
	return Event{Context: a.ctx, Key: a.lk.shown(a.key), Owner: a.lk.opts.Owner}
}

func (a *attempt) wanted() {
	if hook := a.lk.opts.Trace.Wanted; hook != nil {
		hook(a.event())
	}
}

func (a *attempt) tried(g driver.Grant, err error) {
	if hook := a.lk.opts.Trace.Tried; hook != nil {
		if err == nil {
			err = heldError(g)
		}
		a.unsuccessful(hook, err)
	}
}

func (a *attempt) gaveUp(err error) {
	if hook := a.lk.opts.Trace.GaveUp; hook != nil {
		a.unsuccessful(hook, err)
	}
}

func (a *attempt) unsuccessful(hook func(Event), err error) {
	e := a.event()
	e.Waited, e.Err = a.lk.now()-a.began, err
	hook(e)
}

// locked notifies the trace that a caller has acquired the lock.
func (l *Lock) locked(began time.Duration) {
	if hook := l.lease.lk.opts.Trace.Locked; hook != nil {
		e := l.event()
		e.Waited, e.Held = l.since-began, 0
		hook(e)
	}
}

// unlocked notifies the trace of the locks that Close has unlocked; failed are the claims
// of those whose release failed.
func (lk *Locker) unlocked(locks []*Lock, failed []driver.Claim, err error) {
	hook := lk.opts.Trace.Unlocked
	if hook == nil {
		return
	}
	unknown := make(map[string]bool, len(failed))
	for _, claim := range failed {
		unknown[claim.ID] = true
	}
	for _, l := range locks {
		e := l.event()
		if unknown[l.lease.claim().ID] {
			e.Err = err
		}
		hook(e)
	}
}

func (l *Lock) event() Event {
	e := l.lease.event(l.since)
	e.Fence = l.fence
	return e
}

// event is an event of a lock that has been held since the given time.
func (l *lease) event(since time.Duration) Event {
	e := Event{Context: l.ctx, Key: l.lk.shown(l.claim().Key), Owner: l.lk.opts.Owner, Fence: l.fence, Held: l.lk.now() - since}
	if e.Context == nil {
		e.Context = context.Background()
	}
	return e
}
