package redislock

import "context"

// A Conn is the part of a Redis client library that a Store and the records of package
// redisonce need. [Rueidis] makes a Conn from a rueidis client, package goredis from a
// go-redis client.
type Conn interface {
	// Do sends commands, all at once where the library can, and returns a reply for each
	// command, in order. A command goes to the node of its keys.
	Do(ctx context.Context, cmds ...Command) []Reply

	// Confirm sends a command, followed on the same connection by WAIT for the given
	// number of replicas. confirmed is how many replicas had the write when ctx ended.
	Confirm(ctx context.Context, cmd Command, replicas int) (reply Reply, confirmed int64)

	// Apart makes a connection that no other call uses until Close, to the node of a key. A
	// new connection is best: a Store compares what two connections are granted, which shows
	// an address that leads to several servers. If Apart fails, or has no connection when
	// ctx ends, the Store goes on without that proof, and calls Apart again after a pause. A
	// Store calls Apart before its first lock, several times if two connections are granted the
	// same lock, and not after a proof.
	Apart(ctx context.Context, key string) (Single, error)

	// Primaries returns a connection to each primary; for a single server, one
	// connection. If primaries do not answer, Primaries returns an error, and may return
	// the connections to the others.
	Primaries(ctx context.Context) ([]Conn, error)

	// Cluster reports whether this is a Redis Cluster.
	Cluster() bool

	// Listen subscribes to c, a sharded channel if c says so, and calls receive with each
	// message, one after the other. Listen calls ready when the server has confirmed the
	// subscription. Listen returns when ctx ends, when the subscription ends, or if
	// subscribing fails.
	Listen(ctx context.Context, c Channel, ready func(), receive func(message string)) error

	// Dials counts the connections made so far. Once a reply of a new connection has
	// arrived, the count includes that connection. 0 means that the library cannot count.
	Dials() uint64

	// Close ends what the Conn has made itself. Close leaves the user's client alone.
	Close()
}

// A Single is one connection, made by Apart. One goroutine uses a Single at a time.
type Single interface {
	// Do is Do of Conn over this connection.
	Do(ctx context.Context, cmds ...Command) []Reply

	// Close ends the connection, without waiting for the server, which may hang.
	Close()
}

// A Command is one Redis command.
type Command struct {
	Words []string // its name and all words before the keys
	Keys  []string // all in one slot
	Args  []string

	// ReadOnly says that the command changes nothing, so that the library may repeat the
	// command after a connection breaks.
	ReadOnly bool
}

// A Reply is the answer to a Command: nil, an int64, a string or a []any of these types;
// or an error of the library.
type Reply struct {
	Value any
	Err   error
}

// A Channel of Redis's publish and subscribe.
type Channel struct {
	Name    string
	Sharded bool // only the node of the name's slot knows the channel
}
