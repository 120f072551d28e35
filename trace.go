package holdfast

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// A Trace observes locks. Every function may be nil. The functions are called from the
// goroutine in which the event happens, must be quick, and must not call the Locker.
//
// Every Wanted is followed by one Locked or one GaveUp, and every Locked goes with one Lost
// or one Unlocked. So counting the events gives the number of waiting calls and of held
// locks. A lock that is lost at once may be Lost before the lock is Locked. A call with a bad
// key or option has no Wanted, and neither has a call that enters a lock again.
type Trace struct {
	Wanted func(Event) // a call wants a lock

	// Tried: the store was asked and did not grant. Err says why: an error that matches
	// ErrHeld, or the error of the store. A call that waits may have many.
	Tried func(Event)

	// Locked: a caller has acquired a lock after Waited. With a hand-over within the process
	// the store was not asked.
	Locked func(Event)

	// GaveUp: a call has ended without a lock after Waited. Err is the error of the call.
	GaveUp func(Event)

	// Renewed: the lease is renewed, after a third of the TTL, again and again.
	Renewed func(Event)

	// AtRisk: half of the validity is gone without a renewal. Err is the last failure. Renewed,
	// Lost or Unlocked follows.
	AtRisk func(Event)

	// Lost: the lock ended after Held without an Unlock. Err is a LostError. The caller's
	// Unlock may come later, and has no event then.
	Lost func(Event)

	// Unlocked: the lock was unlocked after Held. Err is nil if the store has confirmed the
	// release, or if the lock was Parked.
	Unlocked func(Event)
}

// An Event is one step in the life of a lock.
type Event struct {
	Context context.Context // of the call that wanted the lock, ended or not; never nil
	Key     string          // without the prefix
	Owner   string          // [Options].Owner of the Locker
	Fence   uint64          // the fencing token; 0 before the grant, or without tokens
	Waited  time.Duration   // since Wanted
	Held    time.Duration   // since Locked
	Err     error           // see the functions of Trace
	Parked  bool            // Unlocked: the Locker keeps the key for a moment, see [Lock.Unlock]
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

// lasts reports whether a hook needs the context of a held lock.
func (t *Trace) lasts() bool {
	return t.Locked != nil || t.Renewed != nil || t.AtRisk != nil || t.Lost != nil || t.Unlocked != nil
}

func emit(hook func(Event), e Event) {
	if hook != nil {
		hook(e)
	}
}

// event is an event of the engine as the Trace receives it.
func (lk *Locker) event(e engine.Event) Event {
	made := Event{
		Context: e.Context, Key: lk.shown(e.Key), Owner: lk.opts.Owner, Fence: e.Fence,
		Waited: e.Waited, Held: e.Held, Err: e.Err, Parked: e.Parked,
	}
	if made.Context == nil {
		made.Context = context.Background()
	}
	return made
}

// hooks passes the events of the engine to the Trace, and logs what no call can return.
func (lk *Locker) hooks() engine.Hooks {
	pass := func(hook func(Event)) func(engine.Event) {
		if hook == nil {
			return nil
		}
		return func(e engine.Event) { hook(lk.event(e)) }
	}
	t := lk.opts.Trace
	return engine.Hooks{
		Wanted:    pass(t.Wanted),
		Tried:     pass(t.Tried),
		Locked:    pass(t.Locked),
		GaveUp:    pass(t.GaveUp),
		Renewed:   pass(t.Renewed),
		Unlocked:  pass(t.Unlocked),
		AtRisk:    lk.atRisk,
		Lost:      lk.lost,
		Unwatched: lk.unwatched,
		Stuck:     lk.stuck,
	}
}

func (lk *Locker) atRisk(happened engine.Event) {
	e := lk.event(happened)
	emit(lk.opts.Trace.AtRisk, e)
	lk.log(slog.LevelWarn, "lock is at risk: not renewed for half of its TTL", "key", e.Key, "fence", e.Fence, "error", e.Err)
}

func (lk *Locker) lost(happened engine.Event, why engine.Loss) {
	e := lk.event(happened)
	emit(lk.opts.Trace.Lost, e)
	if why.Reason == engine.Dropped {
		lk.log(slog.LevelError, "lock was dropped without Unlock and is no longer renewed", "key", e.Key, "fence", e.Fence)
		return
	}
	lk.log(slog.LevelWarn, "lock is lost", "key", e.Key, "fence", e.Fence, "reason", string(lossReasons[why.Reason]), "error", why.Err)
}

func (lk *Locker) unwatched(happened engine.Event) {
	level := slog.LevelWarn
	if happened.Again {
		level = slog.LevelDebug
	}
	lk.log(level, "cannot be woken by the store, asks it again and again instead", "key", lk.shown(happened.Key), "error", happened.Err)
}

// stuck logs where the call waits. Where the holder called Lock is unknown: to record it
// would cost every lock 100 ns.
func (lk *Locker) stuck(happened engine.Event, held engine.Refusal) {
	lk.log(slog.LevelWarn, "a call waits for a lock that this Locker holds: is it a nested call without the lock's context, or is an Unlock missing?",
		"key", lk.shown(happened.Key), "waits", calledFrom(), "since", held.Since, "note", held.Note)
}

var inside = reflect.TypeFor[Locker]().PkgPath() + "."

// calledFrom returns the file and line that called this package.
func calledFrom() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		ours := strings.HasPrefix(f.Function, inside) || strings.HasPrefix(f.Function, inside[:len(inside)-1]+"/internal/engine.")
		if !ours || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
