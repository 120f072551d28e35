package drivertest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Link is the way from a client to its server.
type Link interface {
	Blackhole(on bool) // connections and requests are accepted, and nothing is answered
	Refuse(on bool)    // new connections are refused
	Reset()            // breaks the connections that are open
}

// outageRules are about a server that cannot be reached. The harness says by Linked how to
// interrupt the way to it.
var outageRules = []rule{
	// A hung server is worse than a dead one, because no error arrives. Client libraries
	// that heed only deadlines, or only their own time-outs, keep the caller waiting.
	{
		name:  "outage/silent",
		words: "Every call ends with its context, cancelled or past its deadline, even if the server accepts connections and never answers.",
		when:  func(h Harness) bool { return h.Linked != nil },
		check: func(e *env, _, _ *client) {
			e.silent(func(link Link) { link.Blackhole(true) })
			e.silent(func(link Link) {
				link.Blackhole(true)
				link.Reset()
			})
		},
	},
	// Callers read context.DeadlineExceeded as their own limit. A time-out of a client
	// library has to be told apart, or a caller gives up although its own time is not over.
	{
		name:  "outage/own-limit",
		words: "If a call ends before its context because the server is silent, its error does not match the error of a context.",
		when:  func(h Harness) bool { return h.Linked != nil },
		check: func(e *env, _, _ *client) {
			e.together(
				func() { e.limited(func(link Link) { link.Blackhole(true) }) },
				func() {
					e.limited(func(link Link) {
						link.Blackhole(true)
						link.Reset()
					})
				})
		},
	},
	// "context deadline exceeded" alone sends people to the wrong place. The last reason,
	// such as "connection refused", belongs in the error.
	{
		name:  "outage/refused",
		words: "If the server refuses connections, the error of a call says so, even if the call tried until its context ended.",
		when:  func(h Harness) bool { return h.Linked != nil },
		check: refusedConnections,
	},
	// A program that shuts down during an outage must end. A Close that releases, or waits
	// for calls in flight, needs a limit of its own.
	{
		name:  "outage/close",
		words: "Close takes a few seconds at most, even if the server never answers.",
		when:  func(h Harness) bool { return h.Linked != nil },
		check: closedInSilence,
	},
}

const (
	// closing is how long Close may take: the few seconds of the contract.
	closing = 5 * time.Second

	// staying is longer than most limits of a store's own.
	staying = 5 * time.Second

	// stay is how long a caller waits for a server that does not answer.
	stay = 50 * time.Millisecond

	// overrun is by how much a call may outlast its context in real time.
	overrun = 400 * time.Millisecond
)

// partings are the ways in which a caller leaves after stay. One context has a deadline
// that is far away: a store must not heed the deadline alone.
var partings = map[string]func() (context.Context, context.CancelFunc){
	"cancelled": func() (context.Context, context.CancelFunc) {
		return cancelled(context.WithCancel(context.Background()))
	},
	"cancelled before its deadline": func() (context.Context, context.CancelFunc) {
		return cancelled(context.WithTimeout(context.Background(), time.Minute))
	},
	"past its deadline": func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), stay)
	},
}

// cancelled lets the caller of a context leave after stay.
func cancelled(ctx context.Context, cancel context.CancelFunc) (context.Context, context.CancelFunc) {
	time.AfterFunc(stay, cancel)
	return ctx, cancel
}

// linked opens a client that has met its server: the server has granted a claim, and
// refused a second claim.
func (e *env) linked() (store driver.Store, link Link, held driver.Claim) {
	store, link = e.harness.Linked(e.tb)
	holder := on(e.anotherKey(), e.exclusive("held"))
	c := &client{env: e, store: store}
	c.granted(holder)
	c.refused(on(holder.Key, e.exclusive("refused")))
	return store, link, holder.Claim
}

// silent makes every call of a client whose server falls silent.
func (e *env) silent(fall func(Link)) {
	store, link, held := e.linked()
	defer store.Close() // Close may fail.
	fall(link)
	defer link.Blackhole(false)
	for how, parting := range partings {
		var calls []func()
		for _, call := range e.everyCall(store, held) {
			calls = append(calls, func() { e.ends(call, how, parting) })
		}
		e.together(calls...)
	}
}

// ends makes a call that its caller leaves, and fails if the call goes on.
func (e *env) ends(call call, how string, parting func() (context.Context, context.CancelFunc)) {
	limit := overrun
	if e.harness.Bubble {
		limit = 0
	}
	late := e.quickest(limit, func() time.Duration {
		ctx, cancel := parting()
		defer cancel()
		ended := make(chan time.Time, 1)
		stop := context.AfterFunc(ctx, func() { ended <- now() })
		_ = call.make(ctx)
		returned := now()
		if stop() {
			return 0 // before its context
		}
		return returned.Sub(<-ended)
	})
	if late > limit {
		e.failf("%s with a context %s returned %v after that had ended", call.name, how, late)
	}
}

// limited makes every call of a client whose server falls silent. The context lasts
// longer than most limits of a store's own.
func (e *env) limited(fall func(Link)) {
	store, link, held := e.linked()
	defer store.Close() // Close may fail.
	fall(link)
	defer link.Blackhole(false)
	ctx, cancel := context.WithTimeout(context.Background(), staying)
	defer cancel()
	var calls []func()
	for _, call := range e.everyCall(store, held) {
		calls = append(calls, func() {
			err := call.make(ctx)
			if deadline, _ := ctx.Deadline(); now().Before(deadline) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
				e.failf("%s returned %v, and its context has not ended", call.name, told(err).String())
			}
		})
	}
	e.together(calls...)
}

// A call is a method call of a store, with all arguments but the context.
type call struct {
	name string
	make func(context.Context) error
}

// everyCall are the calls of a store that has granted held.
func (e *env) everyCall(store driver.Store, held driver.Claim) []call {
	acquire := func(a driver.Ask) func(context.Context) error {
		return func(ctx context.Context) error {
			g, err := store.Acquire(ctx, a)
			if err == nil && g.OK {
				e.failf("Acquire of %s was granted by a server that did not answer", show(a))
			}
			return err
		}
	}
	stranger := e.exclusive("stranger")
	calls := []call{
		{"Acquire", acquire(on(e.anotherKey(), e.exclusive("alone")))},
		{"Acquire of a claim that waits", acquire(on(held.Key, waiting(e.exclusive("waits"))))},
		{"Renew", func(ctx context.Context) error {
			return errors.Join(store.Renew(ctx, []driver.Renewal{{Claim: held}, {Claim: stranger.Claim}})...)
		}},
		{"Release", func(ctx context.Context) error {
			return errors.Join(store.Release(ctx, []driver.Release{{Claim: held}, {Claim: stranger.Claim}})...)
		}},
	}
	if s, ok := store.(driver.Watcher); ok {
		calls = append(calls, call{"Watch", func(ctx context.Context) error {
			stop, err := s.Watch(ctx, on(held.Key, e.exclusive("watches")).Claim, func(driver.Grant) {})
			if err == nil {
				stop()
			}
			return err
		}})
	}
	if s, ok := store.(driver.Inspector); ok {
		calls = append(calls,
			call{"Holders", func(ctx context.Context) error { return errorOf(s.Holders(ctx, held.Key)) }},
			call{"Keys", func(ctx context.Context) (last error) {
				for _, last = range s.Keys(ctx, e.key) {
				}
				return last
			}},
			call{"Break", func(ctx context.Context) error { return s.Break(ctx, held.Key, driver.PublicID(held.ID)) }})
	}
	if s, ok := store.(driver.Checker); ok {
		calls = append(calls, call{"Check", func(ctx context.Context) error { return errorOf(s.Check(ctx)) }})
	}
	if s, ok := store.(driver.Creator); ok {
		calls = append(calls, call{"Create", s.Create})
	}
	if s, ok := store.(driver.Ager); ok {
		calls = append(calls, call{"Age", func(ctx context.Context) error { return errorOf(s.Age(ctx)) }})
	}
	return calls
}

// errorOf is the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// refusedConnections looks for any text in the error besides the words of the context,
// since each client library describes a refused connection in its own words.
func refusedConnections(e *env, _, _ *client) {
	store, link, _ := e.linked()
	defer store.Close() // Close may fail.
	link.Refuse(true)
	defer link.Refuse(false)
	link.Reset()
	// A busy machine may not be refused in time.
	for limit := staying; ; limit *= 2 {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		_, err := store.Acquire(ctx, on(e.anotherKey(), e.exclusive("asks")))
		cancel()
		if err != nil && strings.Trim(strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), ""), ": \n") != "" {
			return
		}
		if err == nil || limit > patience/2 {
			e.failf("Acquire returned %v, which does not say that the server refuses connections", told(err))
		}
	}
}

// closedInSilence leaves calls unanswered before Close, so that Close may have to wait for
// their connections.
func closedInSilence(e *env, _, _ *client) {
	took := e.quickest(closing, func() time.Duration {
		store, link, held := e.linked()
		link.Blackhole(true)
		defer link.Blackhole(false)
		ctx, cancel := context.WithTimeout(context.Background(), stay)
		defer cancel()
		_, _ = store.Acquire(ctx, on(e.anotherKey(), e.exclusive("unanswered")))
		store.Release(ctx, []driver.Release{{Claim: held}})
		began := now()
		_ = store.Close()
		return now().Sub(began)
	})
	if took > closing {
		e.failf("Close took %v while the server did not answer", took)
	}
}
