package redislock

import "context"

// A Conn is what a Store needs of a Redis client library. [New] makes one from
// a rueidis client, package goredis from a go-redis one.
type Conn interface {
	// Do sends commands, all at once where the library can, and returns a reply
	// for each, in order. A command goes to the node of its keys.
	Do(ctx context.Context, cmds ...Command) []Reply

	// Confirm sends a command and, after it on the same connection, WAIT for so
	// many replicas. It returns how many had the write when ctx ended.
	Confirm(ctx context.Context, cmd Command, replicas int) (reply Reply, confirmed int64)

	// Primaries are connections to each primary. Of a single server that is one.
	Primaries(ctx context.Context) ([]Conn, error)

	// Cluster reports whether this is a Redis Cluster.
	Cluster() bool

	// Listen subscribes to a channel, to a sharded one if its name says where
	// that is, and calls hear with each message, one after the other. It calls
	// ready when the server has confirmed the subscription. It returns when ctx
	// has ended or the subscription has, or could not be made.
	Listen(ctx context.Context, c Channel, ready func(), hear func(message string)) error

	// Dials counts the connections made so far. It is never too small once a
	// reply of a new connection has arrived; 0 if the library cannot tell.
	Dials() uint64

	// Close ends what the Conn has made itself. A client of the user's is left
	// alone.
	Close()
}

// A Command is one Redis command.
type Command struct {
	Words []string // its name and what else stands before the keys
	Keys  []string // all in one slot
	Args  []string
}

// A Reply is the answer to a Command: nil, an int64, a string or a []any of
// such; or an error of the library's.
type Reply struct {
	Value any
	Err   error
}

// A Channel of Redis's publish and subscribe.
type Channel struct {
	Name    string
	Sharded bool // only the node of the slot of its name knows it
}
