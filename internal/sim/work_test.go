package sim

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// work is the loop of a goroutine: want a lock, hold, pause. When the faults are over,
// the goroutine wants each key once more.
func (p *play) work(r *Routine) {
	for !p.over() && r.P.ctx.Err() == nil && !r.P.ended() {
		r.Sleep(r.Upto(p.ttl / 2))
		ctx, cancel := r.Context(r.Upto(5 * p.ttl))
		p.one(ctx, r)
		cancel()
	}
	if !p.still {
		p.rests(r)
	}
	var wants []Want
	for _, key := range p.keys {
		wants = append(wants, p.kind(r, Want{Key: key}))
	}
	p.again(r, wants)
}

// one draws a call and makes the call.
func (p *play) one(ctx context.Context, r *Routine) {
	want := p.want(r)
	hold := r.Upto(pick(r.Rand, p.ttl/10, p.ttl, 5*p.ttl/2))
	switch r.Rand.IntN(12) {
	case 0:
		_ = r.Do(ctx, want, func(h *Held) { h.Hold(hold) })
		return
	case 1:
		p.all(ctx, r, want, hold)
		return
	case 2, 3:
		p.rush(ctx, r, want)
		return
	}
	h, err := r.Lock(ctx, want)
	if err != nil {
		return
	}
	h.Hold(hold)
	if want.Kind == Shared && slices.Contains(p.kinds, Slots) && r.Rand.IntN(2) == 0 {
		p.upgrade(ctx, r, h)
	}
	if r.Rand.IntN(8) == 0 && h.Look() {
		h.Enter(r.Upto(p.ttl / 2))
		h.Hold(r.Upto(p.ttl / 2))
	}
	_ = h.Unlock()
}

// upgrade upgrades a shared lock. Sometimes the Unlock of the lock ends the upgrade.
func (p *play) upgrade(ctx context.Context, r *Routine, h *Held) {
	up, err := h.Upgrade(ctx, r.Rand.IntN(4) == 0)
	if err != nil {
		return
	}
	up.Hold(r.Upto(p.ttl))
	if r.Rand.IntN(8) == 0 && up.Look() {
		up.Enter(r.Upto(p.ttl / 2))
	}
	if r.Rand.IntN(3) == 0 {
		return
	}
	_ = up.Unlock()
	h.Hold(r.Upto(p.ttl))
}

// rush acquires one lock again and again, with hardly a pause, so that its claim is parked if
// other processes want the key. Sometimes the goroutine wants other terms in between.
func (p *play) rush(ctx context.Context, r *Routine, want Want) {
	for range 2 + r.Rand.IntN(30) {
		want.Note = pick(r.Rand, "", "", "", "", "", "a note")
		h, err := r.Lock(ctx, want)
		if err != nil {
			return
		}
		h.Hold(r.Upto(200 * time.Microsecond))
		_ = h.Unlock()
		if r.Rand.IntN(3) == 0 {
			r.Sleep(r.Upto(100 * time.Microsecond))
		}
	}
}

// all acquires several locks at once.
func (p *play) all(ctx context.Context, r *Routine, want Want, hold time.Duration) {
	keys := []string{"k0", "k1", "k2"}[:1+r.Rand.IntN(3)]
	g, err := r.LockAll(ctx, keys, want)
	if err != nil {
		return
	}
	g.Hold(hold)
	_ = g.Unlock()
}

// kind draws the kind of a lock.
func (p *play) kind(r *Routine, want Want) Want {
	if want.Kind = pick(r.Rand, p.kinds...); want.Kind == Slots {
		want.Slots = 1 + r.Rand.IntN(p.slots) // Each caller keeps its own limit.
		want.Weight = 1 + r.Rand.IntN(want.Slots)
	}
	return want
}

// want draws a lock.
func (p *play) want(r *Routine) Want {
	want := p.kind(r, Want{Key: pick(r.Rand, p.keys...), Fenced: r.Rand.IntN(4) == 0})
	want.Single = want.Kind == Exclusive && r.Rand.IntN(4) == 0
	switch r.Rand.IntN(8) {
	case 0, 1:
		want.Try = true
	case 2:
		want.Wait = 1 + r.Upto(2*p.ttl)
	case 3:
		want.Every, want.Wait = time.Millisecond+r.Upto(p.ttl/2), 1+r.Upto(2*p.ttl)
	}
	switch r.Rand.IntN(12) {
	case 0:
		want.NoRenew = true
	case 1:
		want.MaxHold = 1 + r.Upto(2*p.ttl)
	case 2:
		if p.atLeast > 0 {
			want.MinHold = 1 + r.Upto(time.Duration(p.atLeast)*p.ttl)
		}
	case 3:
		want.Note = "a note"
	case 4:
		want.TTL = max(p.ttl/2, p.least)
	case 5:
		want.Progress = 1 + r.Upto(2*p.ttl)
	}
	return want
}

// engine is the store in memory, or a server that can fail over.
var engine = &backend{
	make:    either,
	ttls:    []time.Duration{200 * time.Millisecond, time.Second, time.Second, 3 * time.Second, 15 * time.Second},
	least:   holdfast.MinTTL,
	kinds:   slices.Concat(slices.Repeat([]Kind{Exclusive}, 5), []Kind{Shared, Shared, Slots}),
	atLeast: 2,
	manner:  []func(time.Duration) Faults{quiet, lossy, slow, hostile},
	cuts:    6,
	polls:   []time.Duration{500 * time.Millisecond, 20 * time.Millisecond},
	crowds:  []int{1, 2, 3, 8},
	drifts:  true,
}
