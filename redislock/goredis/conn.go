package goredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/redislock"
)

// New returns a Store on the caller's client, which must be a *redis.Client or a
// *redis.ClusterClient. New does no I/O, and Close leaves the client alone. nil options
// mean the defaults. Bad options, and an unsupported client, are [driver.ErrInvalid].
func New(client redis.UniversalClient, opts *redislock.Options) (*redislock.Store, error) {
	c, err := Conn(client)
	if err != nil {
		return nil, err
	}
	return redislock.NewConn(c, opts)
}

// Conn returns a redislock.Conn on the caller's client, with the same requirements as
// [New]. Package redisonce keeps records through a Conn, too.
func Conn(client redis.UniversalClient) (redislock.Conn, error) {
	c, err := newConn(client)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// conn is a redislock.Conn on a go-redis client.
type conn struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient  // nil for a single server
	node    *redis.Client         // nil for a cluster
	prompt  bool                  // the client keeps deadlines
	late    atomic.Pointer[error] // of the last call, if its caller had left
	subscriptions
}

func newConn(client redis.UniversalClient) (*conn, error) {
	c := &conn{client: client}
	switch client := client.(type) {
	case *redis.Client:
		c.node, c.prompt = client, prompt(client)
	case *redis.ClusterClient:
		c.cluster = client
	default:
		return nil, fmt.Errorf("%w: the client is a %T: want a *redis.Client or a *redis.ClusterClient (a Ring moves keys while a server fails)", driver.ErrInvalid, client)
	}
	return c, nil
}

// prompt reports whether a client keeps the deadlines of contexts. A negative time-out, -2
// before redis.NewClient, lets go-redis wait without a deadline.
func prompt(client *redis.Client) bool {
	o := client.Options()
	return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0
}

// within returns the result of call, or the error of ctx if ctx ends first: a client
// keeps deadlines only if configured to, and never notices a cancelled context. Where neither
// matters, call runs in the goroutine of the caller, which saves two switches of goroutines.
func within[T any](ctx context.Context, c *conn, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if c.prompt && bounded.ByLimit(ctx) || ctx.Done() == nil {
		return call()
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := call()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		if late := c.late.Load(); late != nil {
			return none, fmt.Errorf("%w: an earlier call: %w", ctx.Err(), *late)
		}
		return none, ctx.Err()
	}
}

// note keeps the error of a call whose caller has left, for the error of the next such call.
// Without a server, go-redis dials for longer than a call may take.
func (c *conn) note(ctx context.Context, err error) {
	switch {
	case err == nil:
		c.late.Store(nil)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		c.late.Store(&err)
	}
}

// Do implements redislock.Conn.
func (c *conn) Do(ctx context.Context, cmds ...redislock.Command) []redislock.Reply {
	built := make([]*redis.Cmd, len(cmds))
	for i, cmd := range cmds {
		built[i] = command(ctx, cmd)
	}
	replies, err := within(ctx, c, func() ([]redislock.Reply, error) { return c.send(ctx, built), nil })
	if err != nil {
		return slices.Repeat([]redislock.Reply{{Err: err}}, len(cmds))
	}
	return replies
}

func (c *conn) send(ctx context.Context, cmds []*redis.Cmd) []redislock.Reply {
	if len(cmds) == 1 {
		_ = c.client.Process(ctx, cmds[0]) // each command keeps its error
	} else {
		pipeline(ctx, c.client, cmds)
	}
	replies := make([]redislock.Reply, len(cmds))
	for i, cmd := range cmds {
		replies[i] = reply(cmd)
		c.note(ctx, replies[i].Err)
	}
	return replies
}

// pipeline sends commands at once; in a cluster, each node gets its own commands.
func pipeline(ctx context.Context, client redis.UniversalClient, cmds []*redis.Cmd) {
	pipe := client.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
}

func command(ctx context.Context, cmd redislock.Command) *redis.Cmd {
	args := make([]any, 0, len(cmd.Words)+len(cmd.Keys)+len(cmd.Args))
	for _, part := range [][]string{cmd.Words, cmd.Keys, cmd.Args} {
		for _, arg := range part {
			args = append(args, arg)
		}
	}
	built := redis.NewCmd(ctx, args...)
	built.SetStepCount(1) // otherwise a cluster client runs COMMAND, which needs a permission
	if len(cmd.Keys) > 0 {
		built.SetFirstKeyPos(int8(len(cmd.Words)))
	}
	return built
}

func reply(cmd *redis.Cmd) redislock.Reply {
	value, err := cmd.Result()
	if err == redis.Nil {
		return redislock.Reply{}
	}
	return redislock.Reply{Value: value, Err: err}
}

// Confirm implements redislock.Conn. A pipeline to one node takes one connection, and no
// other command waits on the connection meanwhile.
func (c *conn) Confirm(ctx context.Context, cmd redislock.Command, replicas int) (first redislock.Reply, confirmed int64) {
	built := command(ctx, cmd)
	replies, err := within(ctx, c, func() ([]redislock.Reply, error) {
		node, err := c.nodeOf(ctx, cmd.Keys[0])
		if err != nil {
			return nil, err
		}
		wait := redis.NewCmd(ctx, "WAIT", replicas, patience(ctx, node.Options().ReadTimeout).Milliseconds())
		pipeline(ctx, node, []*redis.Cmd{built, wait})
		c.refresh(ctx, built.Err())
		return []redislock.Reply{reply(built), reply(wait)}, nil
	})
	if err != nil {
		return redislock.Reply{Err: err}, 0
	}
	first = replies[0]
	if first.Err == nil {
		first.Err = replies[1].Err
	}
	confirmed, _ = replies[1].Value.(int64)
	return first, confirmed
}

// patience is how long WAIT may wait: a little less than ctx and go-redis allow, so that
// the answer still arrives.
func patience(ctx context.Context, timeout time.Duration) time.Duration {
	left := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	if timeout > 0 {
		left = min(left, timeout)
	}
	return max(left*3/4, time.Millisecond)
}

// nodeOf returns the primary of a key or channel.
func (c *conn) nodeOf(ctx context.Context, key string) (*redis.Client, error) {
	if c.cluster != nil {
		return c.cluster.MasterForKey(ctx, key)
	}
	return c.node, nil
}

// refresh makes a cluster client reload the map of slots after an error, because the map
// may be out of date. Where go-redis picks the node, go-redis reloads by itself.
func (c *conn) refresh(ctx context.Context, err error) {
	if err != nil && c.cluster != nil {
		c.cluster.ReloadState(ctx)
	}
}

// Primaries implements redislock.Conn.
func (c *conn) Primaries(ctx context.Context) ([]redislock.Conn, error) {
	if c.node != nil {
		return []redislock.Conn{c}, nil
	}
	return within(ctx, c, func() ([]redislock.Conn, error) {
		var mu sync.Mutex
		var nodes []redislock.Conn
		err := c.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, &conn{client: node, node: node, prompt: prompt(node)})
			return nil
		})
		return nodes, err
	})
}

// Cluster implements redislock.Conn.
func (c *conn) Cluster() bool { return c.cluster != nil }

// Dials implements redislock.Conn: go-redis does not count.
func (c *conn) Dials() uint64 { return 0 }
