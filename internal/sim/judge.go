package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A Judge checks every call, grant and access.
//
//   - exclusion: the weights of the locks whose Err is nil fit beside each other.
//   - tokens: a held lock has a token. An exclusive lock has a token above the tokens of all
//     locks that were granted before, so that data that has seen its token refuses each late write of
//     a former holder. A lock of any other kind has a token above the tokens of exclusive
//     locks. Only readers share a token. No holder whose Err is nil has a token below a used
//     token.
//   - told: when a lock is granted, Done and the contexts of each conflicting lock are
//     closed. They are closed within a second after a suspend in which a lock has ended, at
//     once when the store reports a loss, and within the TTL after a break. Unlock returns
//     the loss.
//   - order: waiters that do not fit beside each other are granted in FIFO order.
//   - group: Err and the contexts of several locks follow each of the locks.
//   - progress: no call waits for, or is refused, a key that has been free for long.
//   - limit: a call that waits is not refused before its limit, and ends in time; so does
//     Unlock.
//   - kept: a failed renewal is retried, and a lock with a good link is not lost.
//   - hold: MaxHold and Progress end a lock, MinHold keeps the key.
//   - enter: only the context of a lock enters the lock again, unless the lock is Exclusive;
//     the last Unlock ends the lock.
//   - error: a call returns no error without a cause.
//   - close: Close ends in time.
//   - left: no broken claim is left in the server of [Serve], and no claim and no watcher at the end.
type Judge struct {
	w      *World
	mu     sync.Mutex
	keys   map[string]*guarded
	claims map[string]int // renewals tried of a claim, by the claim's public id
	wrong  []string

	calm     time.Duration // when faults and stops ended; negative: not calm
	bound    time.Duration // how long a key may be free while somebody wants it, when it is calm
	place    time.Duration // how long a call takes to enter the store's queue; 0: no queue
	grain    time.Duration // how late the store may notice that a claim has ended
	forgot   time.Duration // until when a lock may predate the last fail-over
	failures int           // fail-overs
}

// guarded is the state of a key, as the judge knows the key.
type guarded struct {
	held    []*Held
	leaving []*Held // unlocked, but kept by MinHold
	waits   []*wait
	ending  []*Held       // locks whose Unlock has not returned
	free    time.Duration // since when nobody holds the key
	top     marks
	before  marks  // top before the store failed over
	used    uint64 // highest token of an access under an exclusive lock
	read    uint64 // highest token of an access by a reader
	tokens  map[uint64]Kind
	broken  []string      // public ids
	claim   string        // public id of the last granted claim
	since   time.Duration // when the claim was first granted
	grants  int
}

// frees notes that the key is not free before t.
func (k *guarded) frees(t time.Duration) { k.free = max(k.free, t) }

// A wait is a call that wants a lock.
type wait struct {
	r     *Routine
	want  Want
	began time.Duration
	limit time.Duration // when the call ends; 0: never
	group *Group        // of a call that wants several locks, which are acquired one after the other
	first bool          // the process neither held nor wanted the key before
	below *Held         // the lock to upgrade
	had   int           // grants of the key before the call
}

func newJudge(w *World) *Judge {
	return &Judge{w: w, keys: make(map[string]*guarded), claims: make(map[string]int), calm: -1}
}

func (j *Judge) key(name string) *guarded {
	k := j.keys[name]
	if k == nil {
		k = &guarded{tokens: make(map[uint64]Kind)}
		j.keys[name] = k
	}
	return k
}

// Calm tells the judge that from now on no link has faults and no process stops. No call
// may wait for a key that has been free for longer than bound. The store serves processes
// in FIFO order once a call is in the queue, which takes up to place. A place of 0 says
// that the store has no FIFO order.
func (j *Judge) Calm(bound, place time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calm, j.bound, j.place = j.w.Now(), bound, place
}

// Forgot tells the judge that the store has lost the last writes. Two holders may have a
// key until the leases that the store has lost have ended.
func (j *Judge) Forgot(longest time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failures++
	again := j.w.Now() < j.forgot
	j.forgot = j.w.Now() + longest
	for _, k := range j.keys {
		if !again {
			k.before = k.top
		}
		for _, h := range k.held {
			h.exempt = true
		}
		k.leaving = nil
	}
}

// Unsure reports whether two locks may exist that do not fit, because the store has lost
// the last writes.
func (j *Judge) Unsure() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.w.Now() < j.forgot
}

// Breaks tells the judge that an operator is about to break the lock with this id.
func (j *Judge) Breaks(key, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.key(key)
	k.broken = append(k.broken, id)
	for _, h := range append(slices.Clone(k.held), k.leaving...) {
		h.exempt = h.exempt || h.Lock.ID() == id || h.below != nil && h.below.Lock.ID() == id
	}
}

// closed drops the locks of a process that has ended.
func (j *Judge) closed(p *Process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range j.keys {
		of := func(h *Held) bool { return h.r.P == p }
		k.held, k.ending = slices.DeleteFunc(k.held, of), slices.DeleteFunc(k.ending, of)
		k.waits = slices.DeleteFunc(k.waits, func(w *wait) bool { return w.r.P == p })
		k.frees(j.w.Now())
	}
}

func (j *Judge) begin(ctx context.Context, r *Routine, want Want, group *Group) *wait {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.key(want.Key)
	here := func(h *Held) bool { return h.r.P == r.P }
	w := &wait{r: r, want: want, began: j.w.Now(), limit: j.limit(ctx, want, group), group: group, had: k.grants}
	w.first = !slices.ContainsFunc(k.held, here) && len(k.ending) == 0 &&
		!slices.ContainsFunc(k.waits, func(o *wait) bool { return o.r.P == r.P })
	k.waits = append(k.waits, w)
	return w
}

// end checks, when a call ends, how long the key was free meanwhile.
func (j *Judge) end(w *wait, refused bool) *guarded {
	k := j.key(w.want.Key)
	k.waits = slices.DeleteFunc(k.waits, func(o *wait) bool { return o == w })
	if w.group != nil { // The group may have held the key until now, and leaves the key taken.
		k.frees(j.w.Now())
		if w.want.MinHold > 0 {
			k.frees(j.w.Now() + w.want.MinHold + j.grain + heartbeat)
		}
	}
	j.progress(k, w, refused)
	j.late(w)
	return k
}

// Overdue checks the calls that still wait. Some of these calls may never end.
func (j *Judge) Overdue() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(j.keys)) {
		for _, w := range j.keys[name].waits {
			j.progress(j.keys[name], w, false)
			j.late(w)
		}
	}
}

// progress checks how long the key has been free while a call wanted the key.
func (j *Judge) progress(k *guarded, w *wait, refused bool) {
	now := j.w.Now()
	k.leaving = slices.DeleteFunc(k.leaving, func(h *Held) bool {
		over := now >= h.at+h.Want.MinHold
		if over {
			k.frees(h.at + h.Want.MinHold + j.grain + heartbeat)
		}
		return over
	})
	grouped := func(o *wait) bool { return o.group != nil } // A group may hold this key and wait for a further key.
	if j.calm < 0 || w.want.Every > 0 || len(k.held)+len(k.ending)+len(k.leaving) > 0 || w.group != nil || slices.ContainsFunc(k.waits, grouped) {
		return
	}
	idle := now - max(k.free, j.calm, w.began)
	if w.want.Try { // The call is refused though nobody wants the key.
		if idle = w.began - max(k.free, j.calm); !refused || len(k.waits) > 0 {
			return
		}
	}
	j.w.Count.longest(idle)
	if idle > j.bound {
		j.violate(w.r, w.want, 0, "progress", fmt.Sprintf("%s: the key has been free for %v", w.want.call(), idle))
	}
}

// refused checks the error of a call.
func (j *Judge) refused(ctx context.Context, w *wait, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(err, holdfast.ErrClosed) || w.r.P.Dead() {
		k := j.key(w.want.Key)
		k.waits = slices.DeleteFunc(k.waits, func(o *wait) bool { return o == w })
		return
	}
	k := j.end(w, errors.Is(err, holdfast.ErrHeld))
	ended := silence.Ended(ctx) != nil
	switch {
	case errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrNotFenced):
		j.violate(w.r, w.want, 0, "error", "the store can do all that is wanted: "+err.Error())
	case w.want.Kind == Upgrade && (errors.Is(err, holdfast.ErrDeadlock) || w.below.Lock.Err() != nil):
	case errors.Is(err, holdfast.ErrHeld) && !ended && j.early(w):
		j.violate(w.r, w.want, 0, "limit", w.want.call()+" is refused before its limit: "+err.Error())
	case errors.Is(err, holdfast.ErrLost) && len(k.broken) == 0 && w.group == nil:
		j.violate(w.r, w.want, 0, "error", "nobody has broken it: "+err.Error())
	case !ended && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		j.violate(w.r, w.want, 0, "error", "the context has not ended: "+err.Error())
	case j.calm >= 0 && w.began > j.calm && !ended && w.want.Wait == 0 && failed(w, err) && !outrun(k, w, err):
		j.violate(w.r, w.want, 0, "error", "the store is well: "+err.Error())
	}
}

func (j *Judge) granted(h *Held, w *wait) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.end(w, false)
	k.grants++
	broken := slices.Contains(k.broken, h.Lock.ID())
	if h.below != nil {
		h.exempt = h.below.exempt
		h.orphan = slices.Contains(k.broken, h.below.Lock.ID())
		broken = broken || h.orphan
		h.below.Token = max(h.below.Token, h.Token)
	}
	h.exempt = h.exempt || broken || j.w.Now() < j.forgot
	k.held = append(k.held, h)
	if h.Lock.Err() != nil {
		return // Lost before the call returned: one of a group, or the process was stopped.
	}
	j.order(k, h, w)
	j.told(k, h)
	for _, o := range k.leaving {
		if early := o.from + o.Want.MinHold*99/100 - time.Millisecond - j.w.Now(); early > 0 && !o.exempt && !h.exempt && !fit(o.Want, h.Want) {
			j.violation(h, "hold", fmt.Sprintf("is granted %v before MinHold of %s is over", early, o.name()))
		}
	}
	j.tokens(k, h, broken)
	j.exclusion(k, h)
}

// look checks an access, and reports whether the lock is held.
func (j *Judge) look(h *Held) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.key(h.Want.Key)
	if h.Lock.Err() != nil {
		return false
	}
	if held := j.w.Now() - h.at; h.Want.MaxHold > 0 && held > h.Want.MaxHold {
		j.violation(h, "hold", fmt.Sprintf("is held for %v, longer than MaxHold", held))
	}
	if idle := j.w.Now() - h.progressed; h.Want.Progress > 0 && idle > h.Want.Progress {
		j.violation(h, "hold", fmt.Sprintf("is held %v after the last progress, longer than Progress", idle))
	}
	j.exclusion(k, h)
	if h.exempt {
		return true
	}
	switch h.Want.Kind {
	case Exclusive, Upgrade:
		if floor := max(k.used, k.read); h.Token < floor {
			j.violation(h, "tokens", fmt.Sprintf("is held after token %d was used", floor))
		}
		k.used = max(k.used, h.Token)
	case Shared:
		if h.Token < k.used && j.failures == 0 {
			j.violation(h, "tokens", fmt.Sprintf("is held after token %d was used", k.used))
		}
		k.read = max(k.read, h.Token)
	}
	return true
}

// leaves is called before Unlock, left after.
func (j *Judge) leaves(h *Held) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.key(h.Want.Key)
	k.held = slices.DeleteFunc(k.held, func(o *Held) bool { return o == h })
	h.leaves = j.w.Now()
	if !h.r.P.Dead() {
		k.ending = append(k.ending, h)
	}
}

func (j *Judge) left(h *Held, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.key(h.Want.Key)
	k.ending = slices.DeleteFunc(k.ending, func(o *Held) bool { return o == h })
	k.frees(j.w.Now())
	j.unlocks(h)
	h.exempt = h.exempt || slices.Contains(k.broken, h.Lock.ID()) // while Unlock was on its way
	if err == nil && h.Want.MinHold > 0 && !h.exempt && j.w.Now() >= j.forgot {
		k.leaving = append(k.leaving, h)
	}
	if why := h.Lock.Err(); errors.Is(why, holdfast.ErrLost) && !errors.Is(err, holdfast.ErrLost) && h.below == nil { // else the reader had the error
		j.violation(h, "told", fmt.Sprintf("is unlocked with %v, although it is lost: %v", err, why))
	}
	if errors.Is(err, holdfast.ErrLost) {
		j.w.Count.add(&j.w.Count.Losses)
		k.frees(j.w.Now() + j.grain)
		j.kept(k, h, err)
	}
}

// entered notes a wrong re-entry into a lock, if the lock is held.
func (j *Judge) entered(h *Held, what string) {
	if h.Lock.Err() != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violation(h, "enter", what)
}

func (h *Held) name() string {
	return fmt.Sprintf("%s/%s (%s)", h.r.P.Name, h.r.Name, h.Want.call())
}

func (j *Judge) violation(h *Held, check, what string) {
	j.violate(h.r, h.Want, h.Token, check, h.name()+" "+what)
}

func (j *Judge) violate(r *Routine, want Want, token uint64, check, what string) {
	j.wrongly(Event{Process: r.P.Name, Routine: r.Name, Key: want.Key, Token: token, Call: check, Outcome: what})
}

// Fail notes a violation without a lock.
func (j *Judge) Fail(key, check, process, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wrongly(Event{Process: process, Key: key, Call: check, Outcome: what})
}

// Wrong returns the violations. Each begins with the name of the check.
func (j *Judge) Wrong() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.wrong)
}

// wrongly notes a violation. The first violation ends the world, since more may follow.
func (j *Judge) wrongly(e Event) {
	e.Step = Wrong
	j.w.Trace.add(e, nil)
	j.wrong = append(j.wrong, e.Call+": "+e.Outcome)
	j.w.cancel()
}

// report fails the test with the first violation and the events before.
func (j *Judge) report() {
	wrong := j.Wrong()
	if len(wrong) == 0 {
		return
	}
	events := j.w.Trace.Events()
	at := slices.IndexFunc(events, func(e Event) bool { return e.Step == Wrong })
	j.w.t.Errorf("seed %d: %s\n%s", j.w.Seed, wrong[0], tail(events[:at+1], events[at].Key, 60))
}
