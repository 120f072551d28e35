package worker

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
)

// A held is a lock that a client holds, or has held.
type held struct {
	*client
	lock  *holdfast.Lock
	key   string
	token uint64 // the token at the grant
	op    int    // of the client, which may be further on when a loss is reported
}

// got records a granted lock. stop ends the watch for its loss.
func (c *client) got(lock *holdfast.Lock) (h *held, stop func() bool) {
	at := history.Now()
	c.away = 0
	h = &held{client: c, lock: lock, key: lock.Key(), token: lock.Fence(), op: c.op}
	h.tell(history.Event{At: at, Kind: history.Got, Token: h.token, Until: h.until(), No: lock.Err() != nil})
	return h, h.watch()
}

// hold works under granted locks, and releases the locks.
func (c *client) hold(op plan.Operation, locks []*holdfast.Lock, unlock func() error) {
	all := make([]*held, len(locks))
	for i, lock := range locks {
		h, stop := c.got(lock)
		defer stop()
		all[i] = h
	}
	switch op.Kind {
	case plan.Slots:
		c.spend(op.Hold, all)
	case plan.Shared:
		all[0].view()
		c.spend(op.Hold, all)
		all[0].view()
	case plan.Reenter:
		all[0].enter()
		fallthrough
	default:
		c.change(op.Hold, all)
	}
	for _, h := range all {
		h.leave()
	}
	err := unlock()
	for _, h := range all {
		h.freed(err)
	}
}

// leave records that the lock is about to be released.
func (h *held) leave() {
	h.sample()
	h.tell(history.Event{Kind: history.Unlocked})
}

// freed records that the lock was released.
func (h *held) freed(err error) {
	e := history.Event{Kind: history.Freed}
	if err != nil {
		e.Note = note(err)
	}
	h.tell(e)
}

// change reads the guarded registers, takes its time, and writes.
func (c *client) change(hold time.Duration, all []*held) {
	type seen struct{ fenced, plain register.State }
	looked := make([]seen, len(all))
	for i, h := range all {
		looked[i].fenced = h.look()
		looked[i].plain = h.read()
	}
	c.spend(hold, all)
	for i, h := range all {
		value := h.value()
		h.writeFenced(value, looked[i].fenced)
		h.writePlain(value, looked[i].plain)
	}
}

// spend sleeps in parts, unless the run is over. After each part, spend samples the locks.
func (c *client) spend(hold time.Duration, all []*held) {
	const part = 25 * time.Millisecond
	for {
		for _, h := range all {
			h.sample()
		}
		if hold <= 0 || c.over() {
			return
		}
		c.sleep(min(hold, part))
		hold -= part
	}
}

func (h *held) tell(e history.Event) {
	e.Key = h.key
	h.client.write(h.op, e)
}

// sample asks whether the lock is held. The time is from before the question, so a held
// lock was held then.
func (h *held) sample() {
	at := history.Now()
	if h.lock.Err() == nil {
		h.tell(history.Event{At: at, Kind: history.Held, Until: h.until()})
	}
}

// until returns when the lock is lost unless it is renewed, 0 without such an end.
func (h *held) until() int64 {
	if deadline, ok := h.lock.Deadline(); ok {
		return history.At(deadline)
	}
	return 0
}

// watch records the loss of the lock when its context ends.
func (h *held) watch() (stop func() bool) {
	return context.AfterFunc(h.lock.Context(context.Background()), func() {
		at := history.Now()
		if err := h.lock.Err(); errors.Is(err, holdfast.ErrLost) {
			h.tell(history.Event{At: at, Kind: history.Lost, Note: note(err)})
		}
	})
}

// enter enters the lock a second time, and leaves again.
func (h *held) enter() {
	ctx := h.lock.Context(context.Background())
	inner, err := h.locks.Lock(ctx, h.key, holdfast.Reenter())
	if err != nil {
		h.tell(history.Event{Kind: history.Entered, No: true, Note: note(err)})
		return
	}
	h.tell(history.Event{Kind: history.Entered, Token: inner.Fence()})
	if err := inner.Unlock(); err != nil && !errors.Is(err, holdfast.ErrLost) {
		h.tell(history.Event{Kind: history.Entered, No: true, Note: note(err)})
	}
}

// value returns a number that no second operation has.
func (c *client) value() uint64 {
	return plan.Value(c.Worker, c.Life, c.number, c.op)
}

// look reads the fenced register and raises its token to the token of the lock. So no write
// of an earlier holder can come between the look and our write.
func (h *held) look() register.State {
	if h.token == 0 { // lost before the grant was known: there is no token for the fence
		return register.State{Refused: true}
	}
	h.tell(history.Event{Kind: history.Looks, Token: h.token})
	state, err := h.append(true, register.Record{Token: h.token})
	h.report(history.Event{Kind: history.Looked, Token: h.token, Value: state.Value, No: state.Refused}, err)
	state.Refused = state.Refused || err != nil
	return state
}

// view reads the fenced register as a reader does, who may not write.
func (h *held) view() {
	since := history.Now()
	state, err := h.registers.Read(context.Background(), register.Name{Key: h.key, Fenced: true})
	h.report(history.Event{Kind: history.Viewed, Since: since, Value: state.Value}, err)
}

// read reads the plain register.
func (h *held) read() register.State {
	state, err := h.registers.Read(context.Background(), register.Name{Key: h.key})
	if err != nil {
		h.fail(err)
		state.Refused = true
	}
	return state
}

// writeFenced writes the value that follows from the look. writeFenced uses the token of
// the grant, whether or not the lock is still held.
func (h *held) writeFenced(value uint64, seen register.State) {
	if seen.Refused {
		return // the look has seen nothing
	}
	h.tell(history.Event{Kind: history.Writes, Token: h.token, Value: value, Seen: seen.Value})
	state, err := h.append(true, register.Record{Token: h.token, Value: value, Seen: seen.Value})
	h.report(history.Event{Kind: history.Wrote, Token: h.token, Value: value, No: state.Refused}, err)
}

func (h *held) writePlain(value uint64, seen register.State) {
	if seen.Refused {
		return
	}
	_, err := h.append(false, register.Record{Token: h.token, Value: value, Seen: seen.Value})
	if err != nil {
		h.fail(err)
	}
}

// append continues after the end of the lock, and of the run.
func (h *held) append(fenced bool, r register.Record) (register.State, error) {
	return h.registers.Append(context.Background(), register.Name{Key: h.key, Fenced: fenced}, r)
}

// report records the answer of a register.
func (h *held) report(e history.Event, err error) {
	if err != nil {
		h.fail(err)
		return
	}
	h.tell(e)
}
