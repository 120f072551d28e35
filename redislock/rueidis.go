package redislock

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/redislock/internal/refused"
)

// Rueidis returns a Conn on the caller's client, which Close leaves alone.
func Rueidis(client rueidis.Client) Conn { return &rueidisConn{client: client} }

// rueidisConn is a Conn on a rueidis client.
type rueidisConn struct {
	client   rueidis.Client
	dialer   *dialer      // nil for the user's client
	calls    atomic.Int64 // under way
	answered atomic.Bool  // the last call
}

func (c *rueidisConn) command(cmd Command) rueidis.Completed {
	built := c.client.B().Arbitrary(cmd.Words...).Keys(cmd.Keys...).Args(cmd.Args...)
	if cmd.ReadOnly {
		// rueidis repeats read-only commands over another connection if a connection
		// breaks. Without Pin, rueidis would recycle the command while the first
		// connection may still read it.
		return built.ReadOnly().Pin()
	}
	return built.Build()
}

// Do implements Conn. Do returns when ctx ends: rueidis notices a cancelled context only
// at the deadline, and not even then while a different caller connects, or while its queue is
// full. If nobody can cancel ctx and no other call is under way, the commands run in the
// goroutine of the caller, which saves two switches of goroutines. After an error, no command
// does so until the server answers: the queue may be full of calls that have ended. Of the
// user's client, the calls under way are unknown.
func (c *rueidisConn) Do(ctx context.Context, cmds ...Command) []Reply {
	// The first Err of a bounded context does not read the clock. The next is of rueidis, or of
	// within: a command whose time is over would break the connection.
	if err := ctx.Err(); err != nil {
		return slices.Repeat([]Reply{{Err: err}}, len(cmds))
	}
	if bounded.ByLimit(ctx) && c.dialer != nil && c.answered.Load() && !c.Cluster() && c.calls.CompareAndSwap(0, 1) {
		defer c.calls.Add(-1)
		return c.send(ctx, cmds)
	}
	replies, err := within(ctx, func() ([]Reply, error) {
		c.calls.Add(1)
		defer c.calls.Add(-1)
		return c.send(ctx, cmds), nil
	}, nil)
	if err != nil {
		return slices.Repeat([]Reply{{Err: err}}, len(cmds))
	}
	return replies
}

func (c *rueidisConn) send(ctx context.Context, cmds []Command) []Reply {
	if len(cmds) == 1 {
		result := c.client.Do(ctx, c.command(cmds[0]))
		c.answered.Store(result.NonRedisError() == nil)
		return []Reply{reply(result)}
	}
	built := make([]rueidis.Completed, len(cmds))
	for i := range cmds {
		built[i] = c.command(cmds[i])
	}
	results := c.client.DoMulti(ctx, built...)
	replies := make([]Reply, len(results))
	answered := true
	for i := range results {
		replies[i] = reply(results[i])
		answered = answered && results[i].NonRedisError() == nil
	}
	c.answered.Store(answered)
	return replies
}

func reply(r rueidis.RedisResult) Reply {
	value, err := r.ToAny()
	if rueidis.IsRedisNil(err) {
		return Reply{}
	}
	return Reply{value, refused.WithoutArgs(err)}
}

// Confirm implements Conn on a connection of its own. On a shared connection, WAIT would
// delay all other commands.
func (c *rueidisConn) Confirm(ctx context.Context, cmd Command, replicas int) (first Reply, confirmed int64) {
	dedicated, err := c.dedicate(ctx)
	if err != nil {
		return Reply{Err: err}, 0
	}
	defer dedicated.done()
	results := dedicated.DoMulti(ctx, c.command(cmd),
		dedicated.B().Wait().Numreplicas(int64(replicas)).Timeout(patience(ctx).Milliseconds()).Build())
	first = reply(results[0])
	confirmed, err = results[1].AsInt64()
	if refused, ok := rueidis.IsRedisErr(err); ok && first.Err == nil {
		first.Err = refused
	}
	return first, confirmed
}

// A dedication is a connection that nobody else uses until done is called.
type dedication struct {
	rueidis.DedicatedClient
	done func()
}

func (c *rueidisConn) dedicate(ctx context.Context) (dedication, error) {
	return within(ctx, func() (dedication, error) {
		client, done := c.client.Dedicate()
		return dedication{client, done}, nil
	}, func(d dedication) { d.done() })
}

// patience is how long WAIT may wait: a little less than ctx allows, so that the answer
// still arrives.
func patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Second
	}
	return max(time.Until(deadline)*3/4, time.Millisecond)
}

// Apart implements Conn.
func (c *rueidisConn) Apart(ctx context.Context, _ string) (Single, error) {
	dedicated, err := c.dedicate(ctx)
	if err != nil {
		return nil, err
	}
	return single{dedicated, c}, nil
}

// single is a connection of its own. In a Cluster, the first command picks the node.
type single struct {
	dedication
	conn *rueidisConn
}

// Do implements Single.
func (s single) Do(ctx context.Context, cmds ...Command) []Reply {
	replies, err := within(ctx, func() ([]Reply, error) {
		replies := make([]Reply, len(cmds))
		built := make([]rueidis.Completed, len(cmds))
		for i := range cmds {
			built[i] = s.conn.command(cmds[i])
		}
		for i, result := range s.DoMulti(ctx, built...) {
			replies[i] = reply(result)
		}
		return replies, nil
	}, nil)
	if err != nil {
		return slices.Repeat([]Reply{{Err: err}}, len(cmds))
	}
	return replies
}

// Close implements Single. It ends the connection, also of a server that hangs.
func (s single) Close() { s.dedication.Close() }

// Cluster implements Conn.
func (c *rueidisConn) Cluster() bool { return c.client.Mode() == rueidis.ClientModeCluster }

// Listen implements Conn. A subscription has its own connection, to keep the connections
// for commands free of rueidis's background reading, which slows down a lone command. In
// a cluster Listen shares connections, because the alternative is one connection per
// slot.
func (c *rueidisConn) Listen(ctx context.Context, ch Channel, ready func(), receive func(message string)) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
			ready()
		}
	})
	fn := func(m rueidis.PubSubMessage) { receive(m.Message) }
	switch {
	case ch.Sharded:
		return c.client.Receive(ctx, c.client.B().Ssubscribe().Channel(ch.Name).Build(), fn)
	case c.Cluster():
		return c.client.Receive(ctx, c.client.B().Subscribe().Channel(ch.Name).Build(), fn)
	}
	dedicated, err := c.dedicate(ctx)
	if err != nil {
		return err
	}
	defer dedicated.Close() // done would unsubscribe, and wait for a server that hangs
	return dedicated.Receive(ctx, dedicated.B().Subscribe().Channel(ch.Name).Build(), fn)
}

// Dials implements Conn.
func (c *rueidisConn) Dials() uint64 {
	if c.dialer == nil {
		return 0
	}
	return c.dialer.dials.Load()
}

// Close implements Conn.
func (c *rueidisConn) Close() {
	if c.dialer != nil {
		c.client.Close() // first, so that commands already sent still arrive
		c.dialer.close()
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
