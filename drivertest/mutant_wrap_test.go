package drivertest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/driver"
)

// wrapped puts a mistake between a client and its ledger.
func wrapped(wrap func(clerk) driver.Store) func(*ways) {
	return func(w *ways) { w.wrap = wrap }
}

// hasty ends a watch with the context of its call.
type hasty struct{ clerk }

func (h hasty) Watch(ctx context.Context, claim driver.Claim, wake func(driver.Grant)) (func(), error) {
	stop, err := h.clerk.Watch(ctx, claim, wake)
	context.AfterFunc(ctx, stop)
	return stop, err
}

// tardy watches only claims that have been requested.
type tardy struct{ clerk }

func (l tardy) Watch(ctx context.Context, claim driver.Claim, wake func(driver.Grant)) (func(), error) {
	all, err := l.Holders(ctx, claim.Key)
	if err != nil || !slices.ContainsFunc(all, func(h driver.Holder) bool { return h.ID == driver.PublicID(claim.ID) }) {
		return func() {}, err
	}
	return l.clerk.Watch(ctx, claim, wake)
}

// deaf ignores the stop of a watch.
type deaf struct{ clerk }

func (d deaf) Watch(ctx context.Context, claim driver.Claim, wake func(driver.Grant)) (func(), error) {
	_, err := d.clerk.Watch(ctx, claim, wake)
	return func() {}, err
}

// few listens to no more than 32 watches.
type few struct{ clerk }

func (f few) Watch(ctx context.Context, claim driver.Claim, wake func(driver.Grant)) (func(), error) {
	f.mu.Lock()
	n := len(f.listeners)
	f.mu.Unlock()
	if n >= 32 {
		return func() {}, nil
	}
	return f.clerk.Watch(ctx, claim, wake)
}

// single ends only the first of two claims.
type single struct{ clerk }

func (s single) Release(ctx context.Context, rs []driver.Release) []error {
	if len(rs) != 2 {
		return s.clerk.Release(ctx, rs)
	}
	return []error{errors.Join(s.clerk.Release(ctx, rs[:1])...), driver.ErrLost}
}

// chatty ignores the stop of a listener.
type chatty struct{ clerk }

func (c chatty) Notify(lost func(key, id string, err error)) func() {
	c.clerk.Notify(lost)
	return func() {}
}

// clinging does not close while there are watches.
type clinging struct{ clerk }

func (c clinging) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) > 0 {
		return errors.New("still watched")
	}
	return nil
}

// holding does not close while there are claims.
type holding struct{ clerk }

func (h holding) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.books {
		if b.Live(h.moment().Now) {
			return errors.New("still held")
		}
	}
	return nil
}

// forgetful acts under a wrong id if there is no time to answer.
type forgetful struct{ clerk }

func (f forgetful) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if ctx.Err() != nil {
		a.ID += "'"
		_, _ = f.clerk.Acquire(context.Background(), a)
		return driver.Grant{}, ctx.Err()
	}
	return f.clerk.Acquire(ctx, a)
}

// busy blocks every call while yielding keys.
type busy struct {
	clerk
	yielding atomic.Int32
}

func (b *busy) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		b.yielding.Add(1)
		defer b.yielding.Add(-1)
		b.clerk.Keys(ctx, prefix)(yield)
	}
}

func (b *busy) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	if b.yielding.Load() > 0 {
		return nil, errors.New("busy")
	}
	return b.clerk.Holders(ctx, key)
}

// rash takes the end of a context for the end of a claim.
type rash struct{ clerk }

func (c rash) Renew(ctx context.Context, rs []driver.Renewal) []error {
	errs := c.clerk.Renew(ctx, rs)
	for i := range errs {
		if ctx.Err() != nil {
			errs[i] = driver.ErrLost
		}
	}
	return errs
}

// boasting reports a release that did not happen.
type boasting struct{ clerk }

func (b boasting) Release(ctx context.Context, rs []driver.Release) []error {
	if ctx.Err() != nil {
		return nil
	}
	return b.clerk.Release(ctx, rs)
}

// bound ends a claim with the context of the call that made it.
type bound struct {
	clerk
	made  context.Context
	claim driver.Claim
}

func (b *bound) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := b.clerk.Acquire(ctx, a)
	if g.OK {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.made, b.claim = ctx, a.Claim
	}
	return g, err
}

func (b *bound) Renew(ctx context.Context, rs []driver.Renewal) []error {
	b.mu.Lock()
	made, claim := b.made, b.claim
	b.mu.Unlock()
	if made != nil && made.Err() != nil {
		b.clerk.Release(ctx, []driver.Release{{Claim: claim}})
	}
	return b.clerk.Renew(ctx, rs)
}
