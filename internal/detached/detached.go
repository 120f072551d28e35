// Package detached lets a call finish its requests even if its caller has left.
//
// Some clients break the connection of a request that is cut short. If many callers give up
// after milliseconds while the server is slow for a moment, new connections cost the server
// more than the requests, and slow the server down further. A detached call runs on its
// own goroutine, and its caller may leave at any time. Requests sent by then are answered;
// later requests are not sent. A sent request keeps its connection until the answer, so
// detached calls leave a connection to requests that cannot wait.
package detached

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Grace is how long a sent request may take after its caller has left: as long as the
// engine allows any request. A server that hangs keeps no connection for longer.
const Grace = time.Second

// ErrClosed says that the Runner is closed.
var ErrClosed = errors.New("store is closed")

// A Runner runs detached calls, a single call per id at a time. The zero value is ready.
// [Do] and [Run] call it.
type Runner struct {
	// Conns, unless nil, returns how many connections detached calls and all other requests
	// may use now, 0 for any number. If there are several, detached calls leave a
	// connection to the other requests.
	Conns func() int

	slots slots

	mu      sync.Mutex
	running map[string]*call
	closing chan struct{} // closed by Close
	closed  bool
	all     sync.WaitGroup
}

// A call is a detached call.
type call struct {
	over chan struct{}           // closed when the call has ended
	end  context.CancelCauseFunc // ends the call's context
	sent context.Context         // the context of sent requests
	cut  context.CancelFunc      // ends sent

	mu    sync.Mutex
	least time.Time // until when the last sent request may take
	wrote bool      // a sent request may have changed something
}

// Do is [Run], and do begins when there is a slot for it.
func Do[T any](ctx context.Context, r *Runner, id string, do func(context.Context) (T, error)) (T, error) {
	return Run(ctx, r, id, func(ctx context.Context) (answer T, err error) {
		leave, err := r.Turn(ctx)
		if err != nil {
			return answer, err
		}
		defer leave()
		return do(ctx)
	})
}

// Run returns the result of do, which runs on another goroutine. The context of do ends with
// ctx, or when r is closed. Run then returns at once; do must send no more requests, and
// requests already sent run to their end: see [Sent]. An error of do or of ctx also matches
// [driver.ErrUnwritten] if nothing was written by then: see [Write].
//
// While an earlier do for this id runs, whether or not its caller has left, Run waits. Run
// never returns the answer of the earlier do, since a grant counts from when its caller has
// sent the request.
func Run[T any](ctx context.Context, r *Runner, id string, do func(context.Context) (T, error)) (answer T, err error) {
	work, e, err := r.begin(ctx, id)
	if err != nil {
		return answer, unwritten(err)
	}
	var got struct { // belongs to the call until the call is over
		answer T
		err    error
	}
	go func() {
		defer r.end(id, e)
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
		err = ErrClosed // rather than the error of do after its context ended
	}
	if err != nil && !e.written() {
		err = unwritten(err)
	}
	return answer, err
}

func unwritten(why error) error { return fmt.Errorf("%w: %w", driver.ErrUnwritten, why) }

// begin waits for the previous call of the id.
func (r *Runner) begin(ctx context.Context, id string) (context.Context, *call, error) {
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

func newCall(ctx context.Context) (context.Context, *call) {
	e := &call{over: make(chan struct{})}
	work, end := context.WithCancelCause(context.WithValue(ctx, contextKey{}, e))
	e.end = end
	e.sent, e.cut = context.WithCancel(context.WithoutCancel(work))
	return work, e
}

// A joint is the context of a call for several callers.
type joint struct {
	context.Context
	callers []context.Context
	end     func()
}

// Err returns an error as soon as the last caller has left, so that no request is sent after that.
func (j *joint) Err() error {
	if !slices.ContainsFunc(j.callers, func(caller context.Context) bool { return caller.Err() == nil }) {
		j.end()
	}
	return j.Context.Err()
}

// Joint returns the context of a call for several callers. The context ends when the contexts of all
// callers have ended, and requests already sent run to their end. over ends the call.
func Joint(callers []context.Context) (ctx context.Context, over func()) {
	work, e := newCall(context.Background())
	end := func() { e.end(nil) }
	go func() {
		for _, caller := range callers {
			select {
			case <-caller.Done():
			case <-e.over:
				return
			}
		}
		end()
		e.leave()
	}()
	return &joint{work, callers, end}, func() {
		close(e.over)
		end()
		e.cut()
	}
}

func (r *Runner) add(ctx context.Context, id string) (context.Context, *call) {
	work, e := newCall(ctx)
	if r.running == nil {
		r.running, r.closing = make(map[string]*call), make(chan struct{})
	}
	r.running[id] = e
	r.all.Add(1)
	return work, e
}

func (r *Runner) end(id string, e *call) {
	r.mu.Lock()
	delete(r.running, id)
	r.mu.Unlock()
	close(e.over)
	e.end(nil)
	e.cut()
	r.all.Done()
}

// Close ends the contexts of all calls, and returns when they are over. From now on, Do
// returns [ErrClosed].
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

// leave ends sent requests when their time is over.
func (e *call) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if rest := time.Until(e.least); rest > 0 {
		time.AfterFunc(rest, e.leave)
		return
	}
	e.cut()
}

// Write says that the next request may change something. If Write fails, the call of ctx
// has ended, and the request must not be sent.
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

// Unwritten says that the requests sent so far by the call of ctx have changed nothing.
func Unwritten(ctx context.Context) {
	if e := of(ctx); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.wrote = false
	}
}

// written reports whether a request may have changed something, once the call's context
// has ended.
func (e *call) written() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wrote
}

// contextKey is the context key of a call.
type contextKey struct{}

func of(ctx context.Context) *call {
	e, _ := ctx.Value(contextKey{}).(*call)
	return e
}

// Runs reports whether ctx is the context of a detached call.
func Runs(ctx context.Context) bool { return of(ctx) != nil }

// A request is the context of a request that a call sends.
type request struct {
	context.Context
	limit   time.Time
	limited bool
}

// Deadline returns when the request ends, if the caller does not leave before.
func (r *request) Deadline() (time.Time, bool) { return r.limit, r.limited }

// Sent returns the context for the next request of a detached call; requests go one after
// the other. The context ends with the call's context, but not before [Grace] is over, and
// with the call. If the caller has left, Sent returns an ended context. A context of no
// detached call is returned unchanged.
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
