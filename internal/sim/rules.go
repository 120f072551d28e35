package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// marks are the highest tokens of the grants of a key: of all, and of the locks that are beside no
// other.
type marks struct{ all, sole uint64 }

// floor is the token that a grant must exceed.
func (m marks) floor(sole bool) uint64 {
	if sole {
		return m.all
	}
	return m.sole
}

func (j *Judge) tokens(k *guarded, h *Held, broken bool) {
	sole := h.Want.Kind == Exclusive || h.Want.Kind == Upgrade
	floor := k.top.floor(sole)
	switch {
	case broken: // The lock was broken before its holder heard of the grant, so a later one may have come first.
		floor = 0
	case j.w.Now() < j.forgot: // A claim inherited within a process may be older than the fail-over.
		floor = min(floor, k.before.floor(sole))
	}
	unsure := h.Want.Kind == Shared && j.failures > 0 // may join readers from before a writer that the store lost
	if h.Token <= floor && !unsure {
		j.violation(h, "tokens", fmt.Sprintf("has a token that is not above %d", floor))
	}
	if kind, known := k.tokens[h.Token]; known && (kind != Shared || h.Want.Kind != Shared) && !unsure {
		j.violation(h, "tokens", "has a token that was given before")
	}
	k.tokens[h.Token] = h.Want.Kind
	k.top.all = max(k.top.all, h.Token)
	if sole && !h.orphan {
		k.top.sole = max(k.top.sole, h.Token)
	}
}

// parkedTurn is how long a process may keep a claim that it parks, with the last park: see
// package engine.
const parkedTurn = time.Millisecond + 50*time.Microsecond

// order checks whether h, after the wait w, has passed another waiter, beside which h does not fit.
// A process may pass the waiters of others for a while, if it has kept its claim. A call for a
// part of the key may ask the store beside others of its process, before it queues. So before the
// world is calm, only waiters for the whole key are judged, within their process.
func (j *Judge) order(k *guarded, h *Held, w *wait) {
	id := h.Lock.ID()
	kept := id == k.claim && j.w.Now() <= k.since+parkedTurn
	if id != k.claim {
		k.claim, k.since = id, j.w.Now()
	}
	if !w.want.queues() || w.group != nil || len(k.broken) > 0 {
		return
	}
	for _, o := range k.waits {
		if !o.want.queues() || o.group != nil || o.r.P.restless() || fit(o.want, w.want) {
			continue
		}
		here := o.r.P == w.r.P
		within := here && o.want.Kind == Exclusive && o.began < w.began
		queued := j.place > 0 && j.calm >= 0 && j.calm < o.began && o.began+j.place < w.began
		if within || queued && !kept && (here || o.first && w.first) {
			j.violate(w.r, w.want, 0, "order", fmt.Sprintf("passes %s/%s, which has waited since %v", o.r.P.Name, o.r.Name, o.began))
		}
	}
}

// heartbeat is the longest sleep of a waiter that nobody wakes, for example when a lease
// that was cut short ends.
const heartbeat = time.Second

// settled is the longest time that a call needs to enter the queue of the store, when the
// world is calm.
const settled = 50 * time.Millisecond

// kept checks whether a lock was lost without need.
func (j *Judge) kept(k *guarded, h *Held, err error) {
	var lost *holdfast.LostError
	if !errors.As(err, &lost) || h.Want.NoRenew || h.exempt || h.below != nil || h.r.P.restless() || len(k.broken) > 0 || h.r.P.Dead() {
		return
	}
	tries := j.claims[h.Lock.ID()]
	switch {
	case lost.Reason == holdfast.LossMaxHold && h.Want.MaxHold > 0:
	case lost.Reason == holdfast.LossStalled && h.mayStall(j.w.Now()):
	case j.calm >= 0 && h.at > j.calm:
		j.violation(h, "kept", "is lost, though the store is well: "+err.Error())
	case lost.Reason == holdfast.LossUnreachable && tries == 1 && h.lasted() > h.ttl()*2/3: // After a late push there is time for one renewal only.
		j.violation(h, "kept", "is lost after one try to renew it: "+err.Error())
	}
}

// renewing counts a try to renew a claim, renewed resets the count.
func (j *Judge) renewing(public string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.claims[public]++
}

func (j *Judge) renewed(public string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.claims, public)
}

// lost checks why a lock has ended before Unlock.
func (j *Judge) lost(h *Held, err error) {
	if errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrClosed) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violation(h, "enter", "has ended before its last Unlock: "+err.Error())
}

// told checks, when h is granted, whether Done of each conflicting lock is closed. The
// check of Done comes before Err, since Err would close Done.
func (j *Judge) told(k *guarded, h *Held) {
	for _, o := range k.held {
		if o != h && o != h.below && !o.exempt && !h.exempt && !fit(o.Want, h.Want) && o.untold() {
			j.violation(h, "told", fmt.Sprintf("is granted, but Done is open of %s with token %d", o.name(), o.Token))
		}
	}
}

// untold reports whether somebody watches Done, and Done is open, although the process runs.
func (h *Held) untold() bool {
	if h.done == nil || h.r.P.unaware() || h.r.P.machine.drowsy() {
		return false
	}
	select {
	case <-h.done:
		return false
	default:
		return true
	}
}

// Broke tells the judge that the store has broken the lock with this id. From then on, no renewal
// succeeds, so the holder is told before the lease ends, even if no news of the break arrives.
func (j *Judge) Broke(key, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, h := range j.key(key).held {
		if h.Lock.ID() == id {
			j.w.After(h.ttl(), func() {
				if !j.Unsure() { // The store may have forgotten the break.
					j.tells(h.r.P, key, id, fmt.Sprintf("was broken %v ago", h.ttl()))
				}
			})
		}
	}
}

// tells checks that the holders of an ended claim of a process have been told.
func (j *Judge) tells(p *Process, key, id, why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, h := range j.key(key).held {
		if h.r.P == p && h.Lock.ID() == id && h.untold() {
			j.violation(h, "told", why+", and Done is open")
		}
	}
}

// wakes checks, after a suspend of a process, that Done closes in time for each lock whose
// lease ended during the suspend.
func (j *Judge) wakes(p *Process) {
	woke := time.Now()
	over := func(h *Held) bool {
		deadline, ends := h.Lock.Deadline()
		return h.r.P == p && h.done != nil && ends && !woke.Before(deadline)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range j.keys {
		for _, h := range k.held {
			if !over(h) {
				continue
			}
			j.w.After(time.Millisecond, func() {
				if over(h) { // No answer sent before the suspend has renewed the lease.
					j.w.After(nap, func() { j.woken(k, h) })
				}
			})
		}
	}
}

func (j *Judge) woken(k *guarded, h *Held) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.Contains(k.held, h) && h.untold() { // and not suspended once more
		j.violation(h, "told", fmt.Sprintf("has ended during a suspend, and %v later Done is open", nap))
	}
}

// exclusion checks whether h fits beside all held locks. Locks of a stopped process are
// checked when the process goes on: a look at Err would announce the loss.
func (j *Judge) exclusion(k *guarded, h *Held) {
	if h.exempt || h.Lock.Err() != nil {
		return
	}
	var sum, limit int64
	others := ""
	for _, o := range k.held {
		if o != h && (o == h.below || o.below == h || o.exempt || o.r.P.unaware() || o.Lock.Err() != nil) {
			continue
		}
		sum += o.Want.weight()
		limit = max(limit, o.Want.limit())
		if o != h {
			others += fmt.Sprintf(" %s with token %d", o.name(), o.Token)
		}
	}
	if sum > limit {
		j.violation(h, "exclusion", "is held beside"+others)
	}
}

// fit reports whether two locks may be held at the same time.
func fit(a, b Want) bool { return a.weight()+b.weight() <= max(a.limit(), b.limit()) }

// lasted returns the time from the grant to the deadline.
func (h *Held) lasted() time.Duration {
	deadline, _ := h.Lock.Deadline()
	return deadline.Sub(h.r.P.w.Trace.began) - h.at
}

// ttl is the TTL of the lock. Until the first renewal, a pushed grant stands for less.
func (h *Held) ttl() time.Duration { return cmp.Or(h.Want.TTL, h.r.P.ttl) }
