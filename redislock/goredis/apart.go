package goredis

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/redislock"
)

// Apart implements redislock.Conn with a client of its own for one connection: a pool of one
// connection would have none to spare.
func (c *conn) Apart(ctx context.Context, key string) (redislock.Single, error) {
	node, err := within(ctx, c, func() (*redis.Client, error) { return c.nodeOf(ctx, key) })
	if err != nil {
		return nil, err
	}
	opts := *node.Options()
	opts.PoolSize, opts.MinIdleConns, opts.MaxIdleConns, opts.MaxActiveConns = 1, 0, 1, 1
	opts.PushNotificationProcessor = nil // the client of the caller has registered handlers there
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(&opts)
	return single{&conn{client: client, node: client, prompt: prompt(client)}}, nil
}

// single is a client of one connection.
type single struct{ *conn }

// Close implements redislock.Single.
func (s single) Close() { _ = s.node.Close() }
