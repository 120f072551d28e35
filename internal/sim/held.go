package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Held is a lock that the judge knows.
type Held struct {
	Lock  *holdfast.Lock
	Want  Want
	Token uint64

	r          *Routine
	from       time.Duration   // when the lock was granted, at the earliest
	at         time.Duration   // when the lock was granted, at the latest
	progressed time.Duration   // the last report of progress, or the grant
	reported   bool            // at least one report of progress was in time
	leaves     time.Duration   // when Unlock began
	done       <-chan struct{} // nil if nobody watches
	exempt     bool            // guarded by Judge.mu: broken by an operator, or lost by the store
	below      *Held           // of an upgrade: the shared lock
	orphan     bool            // an upgrade that may join readers, since the lock below was broken before
	above      *Held           // of a shared lock: the last upgrade; nil without one
}

// Lock acquires a lock and shows the lock to the judge.
func (r *Routine) Lock(ctx context.Context, want Want) (*Held, error) {
	wait := r.begin(ctx, want, nil)
	lock := r.P.Locker.Lock
	if want.Try {
		lock = r.P.Locker.TryLock
	}
	l, err := lock(ctx, want.Key, want.options()...)
	at := r.P.w.Now()
	r.gate()
	if err != nil {
		r.refused(ctx, wait, err)
		return nil, err
	}
	return r.held(ctx, wait, l, at), nil
}

// Do runs f under a lock, as [holdfast.Locker.Do] does.
func (r *Routine) Do(ctx context.Context, want Want, f func(h *Held)) error {
	want.Try = false // Do waits.
	wait := r.begin(ctx, want, nil)
	var h *Held
	err := r.P.Locker.Do(ctx, want.Key, func(inner context.Context) error {
		at := r.P.w.Now()
		r.gate()
		l, _ := holdfast.FromContext(inner)
		h = r.held(ctx, wait, l, at)
		if h.done == nil {
			h.done = inner.Done()
		}
		defer r.P.w.Judge.leaves(h)
		f(h)
		return nil
	}, want.options()...)
	r.gate()
	if h == nil {
		r.refused(ctx, wait, err)
		return err
	}
	r.Event(Event{Step: End, Call: "do", Key: want.Key, Token: h.Token}, err)
	r.P.w.Judge.left(h, err)
	return err
}

// begin records that a call wants a lock, or one of the locks of a group.
func (r *Routine) begin(ctx context.Context, want Want, group *Group) *wait {
	r.gate()
	r.Event(Event{Step: Begin, Call: want.call(), Key: want.Key}, nil)
	return r.P.w.Judge.begin(ctx, r, want, group)
}

// refused records that the call has ended without a lock.
func (r *Routine) refused(ctx context.Context, w *wait, err error) {
	r.Event(Event{Step: End, Call: w.want.call(), Key: w.want.Key}, err)
	if errors.Is(err, holdfast.ErrHeld) {
		r.P.w.Count.add(&r.P.w.Count.Refusals)
	}
	r.P.w.Judge.refused(ctx, w, err)
}

// held records that the call was granted a lock.
func (r *Routine) held(ctx context.Context, w *wait, l *holdfast.Lock, at time.Duration) *Held {
	h := &Held{Lock: l, Want: w.want, Token: l.Fence(), r: r, from: at, at: at, progressed: at}
	if w.group != nil {
		h.from = w.began
	}
	if h.below = w.below; h.below != nil {
		h.below.above = h
	}
	r.Event(Event{Step: End, Call: w.want.call(), Key: w.want.Key, Token: h.Token}, "granted")
	r.P.w.Count.add(&r.P.w.Count.Grants)
	// Watching Done or a context changes how the engine keeps the lock. So only some calls
	// watch.
	switch watch := r.Rand.IntN(3); {
	case w.group != nil:
		h.done = w.group.done
	case watch == 0:
		h.done = l.Done()
	case watch == 1:
		h.done = l.Context(ctx).Done()
		if ctx.Done() != nil {
			h.done = l.Context(context.WithoutCancel(ctx)).Done()
		}
	}
	r.P.w.Judge.granted(h, w)
	return h
}

// Look is an access to the guarded data. Look reports whether the lock is held.
func (h *Held) Look() bool {
	w := h.r.P.w
	h.r.gate()
	w.Count.add(&w.Count.Looks)
	if err := h.Lock.Err(); err != nil {
		h.r.Event(Event{Step: Lost, Key: h.Want.Key, Token: h.Token}, err)
		w.Judge.lost(h, err)
		return false
	}
	h.r.Event(Event{Step: Look, Key: h.Want.Key, Token: h.Token}, nil)
	held := w.Judge.look(h)
	if h.Want.Progress > 0 && h.r.Rand.IntN(2) == 0 {
		if now := w.Now(); h.Lock.Progress() == nil {
			h.progressed, h.reported = now, true
			if h.below != nil {
				h.below.progressed, h.below.reported = now, true
			}
		}
	}
	return held
}

// mayStall reports whether the lock may be lost by now, because no progress was reported. A
// clock may be fast. Before the first report, the engine counts from a grant that the judge
// has not seen.
func (h *Held) mayStall(now time.Duration) bool {
	limit := h.Want.Progress
	return limit > 0 && (!h.reported || now-h.progressed >= limit-limit/50)
}

// Hold keeps the lock for d, with accesses in between, or until the loss of the lock.
func (h *Held) Hold(d time.Duration) { h.r.hold(d, h.Look) }

func (r *Routine) hold(d time.Duration, look func() bool) {
	for end := time.Now().Add(d); ; {
		if !look() || !time.Now().Before(end) {
			return
		}
		r.Sleep(min(r.Upto(d/2)+time.Millisecond, time.Until(end)))
	}
}

// Enter enters the lock again for d.
func (h *Held) Enter(d time.Duration) {
	r, j := h.r, h.r.P.w.Judge
	ctx := h.Lock.Context(r.P.ctx)
	if l, err := r.P.Locker.TryLock(ctx, h.Want.Key); err == nil {
		j.entered(h, "without Reenter")
		_ = l.Unlock()
	} else if !errors.Is(err, holdfast.ErrDeadlock) {
		j.entered(h, "is refused to its own context: "+err.Error())
	}
	want := h.Want
	want.Try, want.Wait, want.Every, want.MinHold, want.MaxHold, want.Progress = false, time.Second, 0, 0, 0, 0
	l, err := r.P.Locker.Lock(ctx, h.Want.Key, append(want.options(), holdfast.Reenter())...)
	r.gate()
	if want.Single {
		if !errors.Is(err, holdfast.ErrInvalid) {
			j.entered(h, fmt.Sprintf("is entered again with Exclusive: %v", err))
		}
		return
	}
	if err != nil {
		j.entered(h, "cannot be entered again: "+err.Error())
		return
	}
	if token := l.Fence(); token != 0 && token != h.Token {
		j.entered(h, "has another token when it is entered again")
	}
	h.Hold(d)
	r.Event(Event{Step: Begin, Call: "unlock inner", Key: h.Want.Key, Token: h.Token}, nil)
	err = l.Unlock()
	r.gate()
	r.Event(Event{Step: End, Call: "unlock inner", Key: h.Want.Key, Token: h.Token}, err)
}

// Unlock releases the lock, and the upgrade of a shared lock first.
func (h *Held) Unlock() error {
	h.leaving()
	err := h.Lock.Unlock()
	h.left(err)
	return err
}

// leaving is called before Unlock, left after.
func (h *Held) leaving() {
	h.r.gate()
	h.r.Event(Event{Step: Begin, Call: "unlock", Key: h.Want.Key, Token: h.Token}, nil)
	if h.above != nil {
		h.r.P.w.Judge.leaves(h.above)
	}
	h.r.P.w.Judge.leaves(h)
}

func (h *Held) left(err error) {
	h.r.gate()
	h.r.Event(Event{Step: End, Call: "unlock", Key: h.Want.Key, Token: h.Token}, err)
	if h.above != nil {
		h.r.P.w.Judge.left(h.above, nil)
		h.above = nil
	}
	if h.below != nil {
		h.below.above = nil
	}
	h.r.P.w.Judge.left(h, err)
}

// Upgrade upgrades a shared lock, and shows the upgrade to the judge.
func (h *Held) Upgrade(ctx context.Context, try bool) (*Held, error) {
	want := h.Want
	want.Kind, want.Try, want.Wait, want.Every, want.MinHold = Upgrade, try, 0, 0, 0
	wait := h.r.begin(ctx, want, nil)
	wait.below = h
	upgrade := h.Lock.Upgrade
	if try {
		upgrade = h.Lock.TryUpgrade
	}
	l, err := upgrade(ctx)
	at := h.r.P.w.Now()
	h.r.gate()
	if err != nil {
		h.r.refused(ctx, wait, err)
		return nil, err
	}
	return h.r.held(ctx, wait, l, at), nil
}
