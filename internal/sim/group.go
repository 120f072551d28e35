package sim

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Group is the locks of one LockAll.
type Group struct {
	All []*Held

	r     *Routine
	keys  []string
	group *holdfast.Group
	done  <-chan struct{} // of a context of the locks; nil if nobody watches
}

// LockAll acquires several locks on the same terms, as [holdfast.Locker.LockAll] does.
func (r *Routine) LockAll(ctx context.Context, keys []string, want Want) (*Group, error) {
	g := &Group{r: r, keys: keys}
	var waits []*wait
	for _, key := range keys {
		want.Key = key
		waits = append(waits, r.begin(ctx, want, g))
	}
	opts := want.options()
	if want.Try {
		opts = append(opts, holdfast.Wait(0))
	}
	group, err := r.P.Locker.LockAll(ctx, keys, opts...)
	at := r.P.w.Now()
	r.gate()
	if err != nil {
		for _, w := range waits {
			r.refused(ctx, w, err)
		}
		return nil, err
	}
	g.group = group
	if r.Rand.IntN(2) == 0 { // as [Routine.held] of a single lock
		g.done = group.Context(context.WithoutCancel(ctx)).Done()
	}
	for _, w := range waits {
		g.All = append(g.All, r.held(ctx, w, group.Lock(w.want.Key), at))
	}
	return g, nil
}

// Hold keeps the locks for d, with accesses to the data of each in between, or until the loss of
// one.
func (g *Group) Hold(d time.Duration) { g.r.hold(d, g.look) }

// look reports whether every lock is held. The context is looked at first: a loss ends it at once.
func (g *Group) look() bool {
	ended := false
	select {
	case <-g.done:
		ended = true
	default:
	}
	held := true
	for _, h := range g.All {
		held = h.Look() && held
	}
	switch err := g.group.Err(); {
	case err == nil && !held:
		g.wrong("has lost a lock, and its Err is nil")
	case err == nil && ended:
		g.wrong("is held, and its context has ended")
	}
	return held
}

// Unlock releases all locks.
func (g *Group) Unlock() error {
	for _, h := range g.All {
		h.leaving()
	}
	err := g.group.Unlock()
	for _, h := range g.All {
		h.left(errorOf(err, h.Want.Key))
	}
	return err
}

// errorOf returns the error of a key among joined errors.
func errorOf(joined error, key string) error {
	all, ok := joined.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range all.Unwrap() {
		if own, ok := err.(*holdfast.Error); ok && own.Key == key {
			return err
		}
	}
	return nil
}

func (g *Group) wrong(what string) {
	j := g.r.P.w.Judge
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violation(g.All[0], "group", what)
}
