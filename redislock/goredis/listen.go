package goredis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/redislock"
)

var (
	errClosed = errors.New("goredis: closed")
	errIdle   = errors.New("goredis: nobody listens on this connection any more")
	errSilent = errors.New("goredis: the connection that listens does not answer")
	errMoved  = errors.New("goredis: the channel has moved to another node")
)

// grace is how long Close waits for connections to end. A connection that is still being
// made to a server that hangs ends with the client's timeouts, if the client has any.
const grace = time.Second

// subscriptions are the listening connections of a conn: one for each node with a channel
// in use.
type subscriptions struct {
	mu      sync.Mutex
	closed  bool
	byNode  map[*redis.Client]*subscription
	running sync.WaitGroup
}

// A listener is a call of Listen.
type listener struct {
	channel redislock.Channel
	ready   func()
	receive func(message string)
	gone    chan error // has room for the error that ends the call

	confirmed bool // guarded by subscription.mu
}

func (l *listener) end(err error) {
	select {
	case l.gone <- err:
	default:
	}
}

// Listen implements redislock.Conn. Only one call at a time may listen on a channel.
func (c *conn) Listen(ctx context.Context, ch redislock.Channel, ready func(), receive func(message string)) error {
	err := c.listen(ctx, &listener{channel: ch, ready: ready, receive: receive, gone: make(chan error, 1)})
	if ctx.Err() == nil {
		c.refresh(ctx, err)
	}
	return err
}

func (c *conn) listen(ctx context.Context, l *listener) error {
	node, err := within(ctx, c, func() (*redis.Client, error) { return c.nodeOf(ctx, l.channel.Name) })
	if err != nil {
		return err
	}
	s, err := c.join(node, l)
	if err != nil {
		return err
	}
	defer s.leave(l)
	select {
	case err := <-l.gone:
		return err
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join adds a listener to the subscription of a node, or to a new subscription.
func (c *subscriptions) join(node *redis.Client, l *listener) (*subscription, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if s := c.byNode[node]; s != nil && s.join(l) {
		return s, nil
	}
	s := newSubscription(node.Subscribe(context.Background())) // to no channel yet, which needs no connection
	s.join(l)
	if c.byNode == nil {
		c.byNode = make(map[*redis.Client]*subscription)
	}
	c.byNode[node] = s
	c.running.Go(s.write)
	c.running.Go(func() {
		s.cancel(s.read())
		c.forget(node, s)
	})
	return s, nil
}

func (c *subscriptions) forget(node *redis.Client, s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byNode[node] == s {
		delete(c.byNode, node)
	}
}

// Close implements redislock.Conn.
func (c *subscriptions) Close() {
	c.mu.Lock()
	c.closed = true
	for _, s := range c.byNode {
		s.cancel(errClosed)
	}
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(grace):
	}
}
