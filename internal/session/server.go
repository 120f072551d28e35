package session

import (
	"context"
	"errors"
	"time"
)

// A Server opens sessions.
type Server interface {
	// Name is the server's name for the lock of a key. Keys of the same name exclude each
	// other. The name is the same in every release: with a version in the name, two releases
	// would hold one key. There is no record beside the name that needs a version.
	Name(key string) string

	// Open begins a session that shows the owner to people. The server ends the session
	// after a silence longer than limit. Open may call events before it returns. If Open
	// fails, nothing is left and Lost is not called any more.
	Open(ctx context.Context, owner string, limit time.Duration, events Events) (Conn, error)
}

// Events are the callbacks of a session. They do not block.
type Events struct {
	// Ending says that the session ends after an error, and why. If this side ends the session,
	// Ending is called before the server hears of the end, so that the owners are notified before
	// others acquire their locks. Ending may be called several times, and after Lost.
	Ending func(err error)

	// Lost says that the session has ended and why. Lost is called once, after every
	// request has been answered.
	Lost func(err error)

	// Free says that the lock of this name was released while under a watch.
	Free func(name string)
}

// A Conn is an open session. Its methods are called one at a time. A method sends one
// request, in the order of the calls, and does not wait. done receives the answer, never in
// the caller's own goroutine; done does not block. When the session ends, open requests are
// answered with an error.
type Conn interface {
	// Ping tells the server how long the session may be silent from now on, and answers nil
	// if the session lives. An error ends the session.
	Ping(limit time.Duration, done func(error))

	// Try acquires a lock that this session does not have, unless a different session holds
	// it. wait says that the caller will retry. The token, drawn while the lock is held, is
	// the first of as many as the session gives to each lock; 0 says that the lock is taken.
	// After an error the session does not have the lock, or ends.
	// backoff.ErrResting refuses the claim without a request to the server.
	Try(name string, wait bool, done func(token uint64, err error))

	// Free releases a lock. An error ends the session.
	Free(name string, done func(error))

	// Help may use the caller's goroutine until the channel is closed, but for a few
	// milliseconds at most: the caller waits for the channel anyway. Unlike the other
	// methods, Help is called at any time.
	Help(until <-chan struct{})

	// Close ends the session. It does not wait for the end; Lost reports the end and why.
	Close(why error)
}

// A Pusher is a Conn that can notify of a lock released by a different session.
type Pusher interface {
	Conn

	// Watch begins to report releases of the lock of this name by Events.Free. Watches on
	// the same lock are counted.
	Watch(name string, done func(error))

	// Unwatch ends one watch.
	Unwatch(name string)
}

// errClosed is what calls to a closed Store return.
var errClosed = errors.New("session store is closed")

// silence is the limit that covers claims of this TTL. With the margin, the renewals of
// many claims share a ping: one ping serves every renewal that follows soon. A busy machine
// can still keep to the minimum of one second.
func silence(ttl time.Duration) time.Duration {
	return max(ttl+min(ttl/10, time.Second), time.Second)
}

// pause is how long a session of this limit goes without a ping.
func pause(limit time.Duration) time.Duration { return min(limit/3, 10*time.Second) }
