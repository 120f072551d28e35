// Package session keeps claims as locks of a session with a server: locks that
// the server forgets when the session ends, such as the advisory locks of
// PostgreSQL and GET_LOCK of MySQL. It knows the contract of package driver and
// no server; pglock and mysqllock bring a [Server] each.
//
// # One session for all claims
//
// A process has one session, whatever number of claims it holds or waits for.
// The server arbitrates between sessions. Within one, its locks are re-entrant,
// so a table of our own arbitrates first: who asks for a lock that this process
// holds, asks for or gives back is answered from there.
//
// # How long a claim stands
//
// The server ends a session that is silent for longer than a limit. The limit
// covers the longest TTL of the claims that are held, by a margin, and is raised
// before a claim is granted that needs more. So every claim stands for its TTL
// from the last request before which its owner knew the session to live, and a
// process that is paused or cut off keeps nothing for longer than the limit. A
// keeper pings for all claims at once, and gives back those that their owner
// does not renew.
//
// When the session ends, all its claims end with it and their owners are told.
// The next claim opens another session; nothing is taken over.
package session

import (
	"context"
	"errors"
	"time"
)

// A Server opens sessions.
type Server interface {
	// Name is what the server calls the lock of a key. Keys of the same name
	// exclude each other.
	Name(key string) string

	// Open begins a session that shows the owner to people, and that the server
	// ends when it is silent for longer than limit. It may call events before it
	// returns. If it fails, nothing is left and Lost is not called any more.
	Open(ctx context.Context, owner string, limit time.Duration, events Events) (Conn, error)
}

// Events are what a session tells by itself. They do not block.
type Events struct {
	// Lost says that the session has ended and why. It is called once, after
	// everything that was asked has been answered.
	Lost func(err error)

	// Free says that the lock of this name was freed while a watch was on it.
	Free func(name string)
}

// A Conn is an open session. Its methods are called one at a time. Each sends
// one request, in the order of the calls, and does not wait. done gets the answer, never from the caller's own
// goroutine; it does not block. What is not answered when the session ends is
// answered with an error.
type Conn interface {
	// Ping tells the server how long the session may be silent from now on, and
	// answers nil if it lives. An error ends the session.
	Ping(limit time.Duration, done func(error))

	// Try takes a lock that this session does not have, unless another has it.
	// The token, drawn while the lock is held, is the first of as many as the
	// session gives to each lock; 0 says that the lock is taken. After an error
	// the session does not have the lock, or ends.
	Try(name string, done func(token uint64, err error))

	// Free gives back a lock. An error ends the session.
	Free(name string, done func(error))

	// Help may put the caller's goroutine to use until the channel is closed, as
	// it waits for that anyway, but for a few milliseconds at most. Unlike the
	// other methods it is called at any time.
	Help(until <-chan struct{})

	// Close ends the session. It does not wait for that; Lost tells it and why.
	Close(why error)
}

// A Pusher is a Conn that can tell when another session frees a lock.
type Pusher interface {
	Conn

	// Watch begins to tell by Events.Free of the lock of this name. Watches on
	// the same lock are counted.
	Watch(name string, done func(error))

	// Unwatch ends one watch.
	Unwatch(name string)
}

// errClosed is what calls to a closed Store return.
var errClosed = errors.New("session store is closed")

// silence is the limit that covers claims of this TTL. The margin spares the
// renewals of many claims a ping each: one serves all that follow soon. The least
// is what a busy machine keeps to.
func silence(ttl time.Duration) time.Duration {
	return max(ttl+min(ttl/10, time.Second), time.Second)
}

// pause is how long a session of this limit goes without a ping.
func pause(limit time.Duration) time.Duration { return min(limit/3, 10*time.Second) }
