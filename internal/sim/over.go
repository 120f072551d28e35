package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/driver"
)

// Over puts a store behind a link. The result is a Watcher, Notifier and Inspector if the
// store is.
func Over(l *Link, store driver.Store) driver.Store {
	f := &far{l, store}
	var (
		w driver.Watcher
		n driver.Notifier
		i driver.Inspector
	)
	if far, ok := store.(driver.Watcher); ok {
		w = watcher{f, far}
	}
	if far, ok := store.(driver.Notifier); ok {
		n = notifier{f, far}
	}
	if far, ok := store.(driver.Inspector); ok {
		i = inspector{f, far}
	}
	return assemble(f, w, n, i)
}

// unwatched hides the ability of a store to push.
func unwatched(store driver.Store) driver.Store {
	i, _ := store.(driver.Inspector)
	return assemble(store, nil, nil, i)
}

// assemble makes one store of the parts, without the nil parts.
func assemble(s driver.Store, w driver.Watcher, n driver.Notifier, i driver.Inspector) driver.Store {
	c, ok := s.(clocked)
	if !ok {
		c = clocked{Store: s}
	}
	switch [3]bool{w != nil, n != nil, i != nil} {
	case [3]bool{true, true, true}:
		return struct {
			clocked
			driver.Watcher
			driver.Notifier
			driver.Inspector
		}{c, w, n, i}
	case [3]bool{true, true, false}:
		return struct {
			clocked
			driver.Watcher
			driver.Notifier
		}{c, w, n}
	case [3]bool{true, false, true}:
		return struct {
			clocked
			driver.Watcher
			driver.Inspector
		}{c, w, i}
	case [3]bool{true, false, false}:
		return struct {
			clocked
			driver.Watcher
		}{c, w}
	case [3]bool{false, true, true}:
		return struct {
			clocked
			driver.Notifier
			driver.Inspector
		}{c, n, i}
	case [3]bool{false, true, false}:
		return struct {
			clocked
			driver.Notifier
		}{c, n}
	case [3]bool{false, false, true}:
		return struct {
			clocked
			driver.Inspector
		}{c, i}
	}
	return c
}

// far is a store behind a link.
type far struct {
	link  *Link
	store driver.Store
}

// An outcome is the result of Acquire in the trace.
type outcome struct {
	grant driver.Grant
	err   error
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return o.err.Error()
	case o.grant.OK && o.grant.Span > 1:
		return fmt.Sprintf("granted #%d to #%d for %v", o.grant.Fence, o.grant.Fence+uint64(o.grant.Span)-1, o.grant.TTL)
	case o.grant.OK:
		return fmt.Sprintf("granted #%d for %v", o.grant.Fence, o.grant.TTL)
	}
	return fmt.Sprintf("refused, retry in %v", o.grant.Left)
}

// Acquire implements [driver.Store].
func (f *far) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	own := a.TTL
	name := f.arrives(&a.Claim)
	o, err := Send(ctx, f.link, "acquire", a.Key, name, func() outcome {
		g, err := f.store.Acquire(context.Background(), a)
		if g.TTL == a.TTL {
			g.TTL = own
		}
		return outcome{g, err}
	})
	if err != nil {
		return driver.Grant{}, err
	}
	if o.grant.OK {
		f.link.granted(a.Key)
	}
	return o.grant, o.err
}

// Renew implements [driver.Store].
func (f *far) Renew(ctx context.Context, rs []driver.Renewal) []error {
	rs = slices.Clone(rs) // The engine may change the slice before the call arrives.
	claims := make([]*driver.Claim, len(rs))
	for i := range rs {
		claims[i] = &rs[i].Claim
		f.link.p.w.Judge.renewing(f.link.p.w.Trace.public(rs[i].ID))
	}
	errs := f.each(ctx, "renew", claims, func() answers { return f.store.Renew(context.Background(), rs) })
	for i := range rs {
		if errs == nil || errs[i] == nil {
			f.link.p.w.Judge.renewed(f.link.p.w.Trace.public(rs[i].ID))
		}
	}
	return errs
}

// Release implements [driver.Store].
func (f *far) Release(ctx context.Context, rs []driver.Release) []error {
	rs = slices.Clone(rs) // as Renew
	claims := make([]*driver.Claim, len(rs))
	for i := range rs {
		claims[i] = &rs[i].Claim
	}
	return f.each(ctx, "release", claims, func() answers { return f.store.Release(context.Background(), rs) })
}

type answers []error

func (as answers) String() string {
	if as == nil {
		return "done"
	}
	return fmt.Sprint([]error(as))
}

// each sends a call about claims.
func (f *far) each(ctx context.Context, call string, claims []*driver.Claim, do func() answers) []error {
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = f.arrives(c)
	}
	key := ""
	if len(claims) == 1 {
		key = claims[0].Key
	}
	errs, err := Send(ctx, f.link, call, key, strings.Join(names, ","), do)
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

// arrives turns a claim into the claim that the store receives, and returns the name of the
// claim in the trace.
func (f *far) arrives(c *driver.Claim) (name string) {
	f.link.p.w.lasts(c.TTL)
	c.TTL = f.link.p.stored(c.TTL)
	return f.link.p.w.Trace.claim(c.ID)
}

// Close implements [driver.Store].
func (f *far) Close() error { return f.store.Close() }

type watcher struct {
	*far
	watcher driver.Watcher
}

// Watch implements [driver.Watcher]. A wake-up may be late or lost.
func (f watcher) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (func(), error) {
	name := f.link.p.w.Trace.claim(c.ID)
	var stopped atomic.Bool
	push := func(g driver.Grant) {
		if stopped.Load() {
			return
		}
		f.link.push("wake", c.Key, name, outcome{g, nil}, func() { wake(g) })
	}
	made := make(chan func(), 2) // a request may arrive twice
	unwatch := func() {
		for {
			select {
			case stop := <-made:
				stop()
				f.link.p.w.watching.Add(-1)
			default:
				return
			}
		}
	}
	stop := func() {
		stopped.Store(true)
		unwatch()
	}
	_, err := Send(ctx, f.link, "watch", c.Key, name, func() string {
		stop, err := f.watcher.Watch(context.Background(), c, push)
		if err != nil {
			return err.Error()
		}
		f.link.p.w.watching.Add(1)
		made <- stop
		if stopped.Load() { // perhaps stopped since made
			unwatch()
		}
		return "done"
	})
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// push sends a message from the store to the process.
func (l *Link) push(call, key, claim string, what any, deliver func()) {
	e := Event{Step: Push, Call: call, Key: key, Claim: claim}
	r, faults := l.rand(call, key), l.faults()
	lost, held := l.blocked(Back)
	if lost || r.Float64() < faults.Wake {
		l.p.w.Count.add(&l.p.w.Count.LostWakes)
		e.Step = Fault
		l.event(e, "push lost")
		return
	}
	l.event(e, what)
	l.after(held+l.delay(r, faults), func() { l.p.deliver(deliver) })
}

type notifier struct {
	*far
	notifier driver.Notifier
}

// Notify implements [driver.Notifier].
func (f notifier) Notify(lost func(key, id string, err error)) (stop func()) {
	unnotify := f.notifier.Notify(func(key, id string, err error) {
		f.link.push("lost", key, f.link.p.w.Trace.claim(id), err, func() { lost(key, id, err) })
	})
	f.link.p.w.watching.Add(1)
	return sync.OnceFunc(func() {
		unnotify()
		f.link.p.w.watching.Add(-1)
	})
}

type inspector struct {
	*far
	inspector driver.Inspector
}

// Holders implements [driver.Inspector].
func (f inspector) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	return ask(ctx, f.link, "holders", key, func() ([]driver.Holder, error) {
		return f.inspector.Holders(context.Background(), key)
	})
}

// Keys implements [driver.Inspector]. The answer arrives as a whole.
func (f inspector) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, err := ask(ctx, f.link, "keys", prefix, func() (keys []string, err error) {
			for key, err := range f.inspector.Keys(context.Background(), prefix) {
				if err != nil {
					return nil, err
				}
				keys = append(keys, key)
			}
			slices.Sort(keys)
			return keys, nil
		})
		if err != nil {
			yield("", err)
			return
		}
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// Break implements [driver.Inspector].
func (f inspector) Break(ctx context.Context, key, id string) error {
	answer, err := Send(ctx, f.link, "break", key, id, func() error {
		return f.inspector.Break(context.Background(), key, id)
	})
	return errors.Join(err, answer)
}
