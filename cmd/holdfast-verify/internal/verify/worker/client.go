package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/driver"
)

// run lets the clients work until the input has ended.
func (w *worker) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	pulse := make(chan struct{})
	all.Go(func() { w.pulse(pulse) })
	var clients sync.WaitGroup
	for n := range w.Clients {
		clients.Go(func() {
			c := &client{worker: w, number: n + 1, plan: w.Workload.Client(w.Worker, w.Life, n+1)}
			for !c.over() {
				c.op++
				c.perform(ctx, c.plan.Next())
			}
		})
	}
	done := make(chan struct{})
	go func() {
		clients.Wait()
		close(done)
	}()
	<-w.finish
	select {
	case <-done:
	case <-time.After(lastWait + 3*w.Workload.TTL):
		stop()
		<-done
	}
	close(pulse)
	all.Wait()
}

// Beats of the pulse. Between two beats, a process has run. If the beats are further apart
// than a stall, the process may not have run.
const beat, stall = 5 * time.Millisecond, 20 * time.Millisecond

// pulse records the times in which the process has not run, or not fully, because the
// process was stopped or the machine was busy.
func (w *worker) pulse(stop <-chan struct{}) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for last := history.Now(); ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := history.Now()
		if now-last > int64(stall) {
			w.history.Add(history.Event{At: now, Kind: history.Stall, Since: last})
		}
		last = now
	}
}

// A client is a goroutine that takes one lock after the other.
type client struct {
	*worker
	number int
	op     int
	plan   *plan.Operations
	away   time.Duration // how long to leave a store alone that has not answered
}

func (c *client) over() bool {
	select {
	case <-c.finish:
		return true
	default:
		return false
	}
}

// tell writes an event of the current operation.
func (c *client) tell(e history.Event) {
	c.write(c.op, e)
}

func (c *client) write(op int, e history.Event) {
	if e.At == 0 {
		e.At = history.Now()
	}
	e.Client, e.Op = c.number, op
	c.history.Add(e)
}

// perform does an operation.
func (c *client) perform(ctx context.Context, op plan.Operation) {
	switch op.Kind {
	case plan.Elect:
		c.lead(ctx, op)
	case plan.Once:
		c.once(ctx, op)
	default:
		c.ask(op)
		if locks, unlock, err := c.take(ctx, op); err != nil {
			c.refused(op, err)
		} else {
			c.hold(op, locks, unlock)
		}
	}
	c.sleep(op.Rest)
}

// ask records that the client is about to request locks.
func (c *client) ask(op plan.Operation) {
	weight, limit := terms(op.Kind)
	for _, key := range op.Keys {
		c.tell(history.Event{Kind: history.Asked, Key: key, Mode: string(op.Kind), Weight: weight, Limit: limit})
	}
}

// refused records why an operation has come to nothing.
func (c *client) refused(op plan.Operation, err error) {
	held := errors.Is(err, holdfast.ErrHeld)
	c.tell(history.Event{Kind: history.Refused, Mode: string(op.Kind), Note: note(err), No: held})
	if held {
		c.away = 0
		return
	}
	// A slow store serves requests that nobody waits for any more. With as many new ones, it never
	// serves one in time.
	c.away = min(max(2*c.away, 20*time.Millisecond), c.Workload.TTL/4)
	c.sleep(c.away)
}

// take requests the locks of an operation.
func (c *client) take(ctx context.Context, op plan.Operation) ([]*holdfast.Lock, func() error, error) {
	if op.Kind == plan.Many {
		group, err := c.locks.LockAll(ctx, op.Keys, options(op)...)
		if err != nil {
			return nil, nil, err
		}
		return group.Locks(), group.Unlock, nil
	}
	lock, err := c.locks.Lock(ctx, op.Keys[0], options(op)...)
	if err != nil {
		return nil, nil, err
	}
	return []*holdfast.Lock{lock}, lock.Unlock, nil
}

func options(op plan.Operation) (all []holdfast.LockOption) {
	if op.Wait > 0 {
		all = append(all, holdfast.Wait(op.Wait))
	}
	switch op.Kind {
	case plan.Try:
		all = append(all, holdfast.Wait(0))
	case plan.Shared:
		all = append(all, holdfast.Shared())
	case plan.Slots:
		all = append(all, holdfast.Slots(plan.SlotLimit))
	}
	return all
}

// terms returns the weight and the limit of a claim, as package driver defines them.
func terms(kind plan.Kind) (weight, limit int64) {
	switch kind {
	case plan.Shared:
		return 1, driver.MaxWeight
	case plan.Slots:
		return 1, plan.SlotLimit
	}
	return driver.MaxWeight, driver.MaxWeight
}

func (c *client) sleep(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// note returns the text of an error for the history.
func note(err error) string {
	const most = 200
	text := err.Error()
	return text[:min(len(text), most)]
}
