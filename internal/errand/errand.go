// Package errand lets requests come to their end though whoever asked has left.
//
// Some clients break the connection of a request that is cut short. Where many give
// up after milliseconds, and the server is slow for a moment, new connections then cost
// it more than the requests, and make it slower still. An errand runs on a goroutine
// of its own: its caller leaves as soon as the caller likes, what was sent by then is
// answered, and what was not is not sent. What was sent keeps its connection until then,
// so errands leave one to requests that cannot wait.
package errand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Grace is how long a request that was sent may take though its caller has left: as
// long as the engine lets any take. A server that hangs keeps no connection for longer.
const Grace = time.Second

// ErrClosed says that the Runner is closed.
var ErrClosed = errors.New("store is closed")

// A Runner runs errands, for each id one at a time. The zero value is ready.
type Runner struct {
	// Conns, unless nil, is how many connections errands and all others may have now, 0
	// for any number. Of several, errands leave one to the others.
	Conns func() int

	lanes lanes

	mu      sync.Mutex
	running map[string]*errand
	closing chan struct{} // closed by Close
	closed  bool
	all     sync.WaitGroup
}

// An errand is what is done for one caller.
type errand struct {
	over chan struct{}           // closed when it has ended
	end  context.CancelCauseFunc // ends its context
	sent context.Context         // of what it sends
	cut  context.CancelFunc      // ends that

	mu    sync.Mutex
	least time.Time // until when what was sent last may take
	wrote bool      // what was sent may have changed something
}

// Do returns what do returns, which runs on another goroutine. The context of do ends
// with ctx, or when r is closed. Do then returns at once; do is to send no more, and
// what it has sent is to come to its end: see [Sent]. An error of do or of ctx matches
// [driver.ErrUnwritten], too, if nothing was written by then: see [Write].
//
// As long as another do for this id runs, whether or not its caller has left, Do waits.
// It never takes the answer of the other for its own, since a grant counts from when
// its asker has sent. Then it waits for a lane.
func Do[T any](ctx context.Context, r *Runner, id string, do func(context.Context) (T, error)) (answer T, err error) {
	work, e, err := r.begin(ctx, id)
	if err != nil {
		return answer, unwritten(err)
	}
	var got struct { // belongs to the errand until that is over
		answer T
		err    error
	}
	go func() {
		defer r.end(id, e)
		leave, err := r.lane(work, r.lanes.line.PushBack)
		if err != nil {
			got.err = err
			return
		}
		defer leave()
		got.answer, got.err = do(work)
	}()
	select {
	case <-e.over:
	case <-work.Done():
	}
	select {
	case <-e.over:
		answer, err = got.answer, got.err
	default:
		e.leave()
		err = cmp.Or(ctx.Err(), ErrClosed)
	}
	if err != nil && context.Cause(work) == ErrClosed {
		err = ErrClosed // rather than what do makes of the end of its context
	}
	if err != nil && !e.written() {
		err = unwritten(err)
	}
	return answer, err
}

func unwritten(why error) error { return fmt.Errorf("%w: %w", driver.ErrUnwritten, why) }

// begin waits for the errand before.
func (r *Runner) begin(ctx context.Context, id string) (context.Context, *errand, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		r.mu.Lock()
		before := r.running[id]
		switch {
		case r.closed:
			r.mu.Unlock()
			return nil, nil, ErrClosed
		case before == nil:
			defer r.mu.Unlock()
			work, e := r.add(ctx, id)
			return work, e, nil
		}
		r.mu.Unlock()
		select {
		case <-before.over:
		case <-ctx.Done():
		case <-r.closing:
		}
	}
}

func (r *Runner) add(ctx context.Context, id string) (context.Context, *errand) {
	e := &errand{over: make(chan struct{})}
	work, end := context.WithCancelCause(context.WithValue(ctx, mark{}, e))
	e.end = end
	e.sent, e.cut = context.WithCancel(context.WithoutCancel(work))
	if r.running == nil {
		r.running, r.closing = make(map[string]*errand), make(chan struct{})
	}
	r.running[id] = e
	r.all.Add(1)
	return work, e
}

func (r *Runner) end(id string, e *errand) {
	r.mu.Lock()
	delete(r.running, id)
	r.mu.Unlock()
	close(e.over)
	e.end(nil)
	e.cut()
	r.all.Done()
}

// Close ends the contexts of all errands, and returns when they are over. Do returns
// [ErrClosed] from now on.
func (r *Runner) Close() {
	r.mu.Lock()
	if !r.closed && r.closing != nil {
		close(r.closing)
	}
	r.closed = true
	for _, e := range r.running {
		e.end(ErrClosed)
	}
	r.mu.Unlock()
	r.all.Wait()
}

// leave ends what was sent when it has had its time.
func (e *errand) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if rest := time.Until(e.least); rest > 0 {
		time.AfterFunc(rest, e.leave)
		return
	}
	e.cut()
}

// Write says that what is sent next may change something. If it fails, the errand of ctx
// has ended, and that must not be sent.
func Write(ctx context.Context) error {
	e := of(ctx)
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	e.wrote = true
	return nil
}

// Unwritten says that what the errand of ctx has sent so far has changed nothing.
func Unwritten(ctx context.Context) {
	if e := of(ctx); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.wrote = false
	}
}

// written reports whether anything may have been changed, once its context has ended.
func (e *errand) written() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wrote
}

// mark is the key by which contexts have their errand.
type mark struct{}

func of(ctx context.Context) *errand {
	e, _ := ctx.Value(mark{}).(*errand)
	return e
}

// Runs reports whether ctx is the context of an errand.
func Runs(ctx context.Context) bool { return of(ctx) != nil }

// A request is the context of what an errand sends.
type request struct {
	context.Context
	limit   time.Time
	limited bool
}

// Deadline returns when it ends, if the caller does not leave before.
func (r *request) Deadline() (time.Time, bool) { return r.limit, r.limited }

// Sent returns the context for what an errand sends now, one after the other. It ends
// when the errand's does, but not before [Grace] is over, and with the errand. If the
// caller has left, it has ended. A context of no errand stays what it is.
func Sent(ctx context.Context) context.Context {
	e := of(ctx)
	if e == nil || ctx.Err() != nil {
		return ctx
	}
	least := time.Now().Add(Grace)
	e.mu.Lock()
	e.least = least
	e.mu.Unlock()
	r := &request{Context: e.sent}
	if r.limit, r.limited = ctx.Deadline(); r.limit.Before(least) {
		r.limit = least
	}
	return r
}
