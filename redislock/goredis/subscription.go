package goredis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingInterval is the interval of pings on a listening connection. The subscription ends if the
// server has sent nothing since the last ping.
const pingInterval = 3 * time.Second

// A subscription is a connection that listens on any number of channels of one node. Two
// goroutines serve the connection, a reader and a writer, because go-redis connects and
// waits while writing.
//
// A subscription ends with its connection. go-redis would reconnect and subscribe to
// everything again, but nobody would learn of the missed messages. In a cluster, go-redis
// would subscribe with one command for channels of several slots, and the command would
// fail.
type subscription struct {
	pubsub *redis.PubSub
	ctx    context.Context // ends with the subscription
	cancel context.CancelCauseFunc
	asked  chan struct{} // has room for one signal that wanted has changed
	alive  atomic.Bool   // the server has sent something since the last ping

	mu        sync.Mutex
	listeners map[string]*listener // by channel
	wanted    []*listener          // to be subscribed
	due       []string             // the channels, "" for a ping, whose answers are still to come, in order
}

func newSubscription(pubsub *redis.PubSub) *subscription {
	s := &subscription{pubsub: pubsub, asked: make(chan struct{}, 1), listeners: make(map[string]*listener)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.alive.Store(true)
	return s
}

// join adds a listener, or returns false if the subscription has ended.
func (s *subscription) join(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.listeners[l.channel.Name] = l
	s.wanted = append(s.wanted, l)
	select {
	case s.asked <- struct{}{}:
	default:
	}
	return true
}

// leave removes a listener, which receives nothing from now on. The subscription ends
// with its last listener. leave does not unsubscribe earlier: a Store leaves all its
// channels at once, and the server's answer would look like the notice that the channel
// has moved.
func (s *subscription) leave(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[l.channel.Name] == l {
		delete(s.listeners, l.channel.Name)
	}
	if len(s.listeners) == 0 {
		s.cancel(errIdle)
	}
}

// write subscribes to the wanted channels until the subscription ends.
func (s *subscription) write() {
	defer s.pubsub.Close() // ends read
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-s.ctx.Done():
			return
		case <-s.asked:
			err = s.subscribe()
		case <-tick.C:
			err = s.probe()
		}
		if err != nil {
			s.cancel(err)
			return
		}
	}
}

func (s *subscription) subscribe() error {
	s.mu.Lock()
	wanted := s.wanted
	s.wanted = nil
	for _, l := range wanted {
		s.due = append(s.due, l.channel.Name)
	}
	s.mu.Unlock()
	for _, l := range wanted {
		send := s.pubsub.Subscribe
		if l.channel.Sharded {
			send = s.pubsub.SSubscribe
		}
		if err := send(s.ctx, l.channel.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *subscription) probe() error {
	if !s.alive.Swap(false) {
		return errSilent
	}
	s.mu.Lock()
	s.due = append(s.due, "")
	s.mu.Unlock()
	return s.pubsub.Ping(s.ctx)
}

// read passes the server's messages on, and returns why it had to stop.
func (s *subscription) read() error {
	for {
		message, err := s.pubsub.Receive(s.ctx)
		var refused redis.Error
		if err != nil && (!errors.As(err, &refused) || !s.answered(err)) {
			return err
		}
		s.alive.Store(true)
		switch m := message.(type) {
		case *redis.Subscription:
			s.changed(m)
		case *redis.Pong:
			s.answered(nil)
		case *redis.Message:
			s.received(m)
		}
	}
}

// changed records that the server has begun or ceased to send a channel. The server
// ceases on its own when the slot of the channel moves to another node.
func (s *subscription) changed(m *redis.Subscription) {
	switch m.Kind {
	case "subscribe", "ssubscribe":
		s.answered(nil)
	case "unsubscribe", "sunsubscribe":
		s.mu.Lock()
		defer s.mu.Unlock()
		if l := s.listeners[m.Channel]; l != nil && l.confirmed {
			l.end(errMoved)
		}
	}
}

// answered takes the next answer that is due, and returns false if no answer is due. An
// error concerns only the listener of the answer.
func (s *subscription) answered(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 {
		return false
	}
	l := s.listeners[s.due[0]]
	s.due = s.due[1:]
	switch {
	case l == nil: // a ping, or the listener has left
	case err != nil:
		l.end(err)
	default:
		l.confirmed = true
		l.ready()
	}
	return true
}

// received calls the listener under the mutex, so that no call comes after Listen has
// returned.
func (s *subscription) received(m *redis.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.listeners[m.Channel]; l != nil && l.confirmed {
		l.receive(m.Payload)
	}
}
