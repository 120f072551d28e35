package goredis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/redislock"
)

// limit bounds every wait. A working store needs a hundredth.
const limit = time.Minute

// unhurried are the options of a client that gives a server a minute to answer.
func unhurried(addr string) *redis.Options {
	return &redis.Options{Addr: addr, DialTimeout: limit, ReadTimeout: limit}
}

// A call is a Listen that runs.
type call struct {
	t        *testing.T
	channel  redislock.Channel
	stop     context.CancelFunc
	ready    chan struct{}
	received chan string
	ended    chan error
}

func listen(t *testing.T, c *conn, channel redislock.Channel) *call {
	l := &call{t: t, channel: channel, ready: make(chan struct{}, 100), received: make(chan string, 100), ended: make(chan error, 1)}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(t.Context())
	t.Cleanup(l.stop)
	go func() {
		l.ended <- c.Listen(ctx, channel, func() { l.ready <- struct{}{} }, func(m string) { l.received <- m })
	}()
	return l
}

// tooEarly is the end of a Listen that should go on.
func (l *call) tooEarly(err error) {
	l.t.Helper()
	if errors.Is(err, errSilent) {
		unproved.Skipf(l.t, "%v", err)
	}
	l.t.Fatalf("Listen on %s ended: %v", l.channel.Name, err)
}

func (l *call) wantReady() {
	l.t.Helper()
	select {
	case <-l.ready:
	case err := <-l.ended:
		l.tooEarly(err)
	case <-time.After(limit):
		l.t.Fatalf("%s is not ready", l.channel.Name)
	}
}

func (l *call) want(message string) {
	l.t.Helper()
	select {
	case got := <-l.received:
		if got != message {
			l.t.Fatalf("%s received %q, want %q", l.channel.Name, got, message)
		}
	case err := <-l.ended:
		l.tooEarly(err)
	case <-time.After(limit):
		l.t.Fatalf("%s did not receive %q", l.channel.Name, message)
	}
}

func (l *call) wantEnd() error {
	l.t.Helper()
	select {
	case err := <-l.ended:
		return err
	case <-time.After(limit):
		l.t.Fatalf("Listen on %s does not end", l.channel.Name)
		return nil
	}
}

func connTo(t *testing.T, client redis.UniversalClient) *conn {
	c := must.Get(newConn(client))
	t.Cleanup(func() { c.Close(); client.Close() })
	return c
}

func subscribers(r *servers.Redis) int {
	text, _ := r.Must("CLIENT", "LIST", "TYPE", "pubsub").(string)
	n := 0
	for _, b := range text {
		if b == '\n' {
			n++
		}
	}
	return n
}

func TestListenSharesConnection(t *testing.T) {
	r := Empty()
	c := connTo(t, redis.NewClient(unhurried(r.Addr())))
	var calls []*call
	for i := range 50 {
		calls = append(calls, listen(t, c, redislock.Channel{Name: fmt.Sprint("channel ", i), Sharded: i%2 == 0}))
	}
	for _, l := range calls {
		l.wantReady()
	}
	if n := subscribers(r); n != 1 {
		t.Errorf("%d connections listen, want one", n)
	}
	say := func(l *call, text string) {
		verb := "PUBLISH"
		if l.channel.Sharded {
			verb = "SPUBLISH"
		}
		r.Must(verb, l.channel.Name, text)
	}
	for i, l := range calls {
		say(l, fmt.Sprint("first ", i))
		say(l, fmt.Sprint("second ", i))
	}
	for i, l := range calls {
		l.want(fmt.Sprint("first ", i))
		l.want(fmt.Sprint("second ", i))
	}

	calls[0].stop()
	if err := calls[0].wantEnd(); !errors.Is(err, context.Canceled) {
		t.Errorf("Listen ended with %v", err)
	}
	say(calls[0], "too late")
	calls[0] = listen(t, c, calls[0].channel)
	calls[0].wantReady()
	say(calls[0], "again")
	calls[0].want("again")

	r.Must("CLIENT", "KILL", "TYPE", "pubsub")
	for _, l := range calls {
		if err := l.wantEnd(); err == nil {
			t.Errorf("%s ended without an error", l.channel.Name)
		}
		l.stop()
	}
	again := listen(t, c, calls[1].channel)
	again.wantReady()
	c.Close()
	if err := again.wantEnd(); !errors.Is(err, errClosed) {
		t.Errorf("Listen ended with %v after Close", err)
	}
	if err := listen(t, c, again.channel).wantEnd(); !errors.Is(err, errClosed) {
		t.Errorf("Listen after Close ended with %v", err)
	}
}

// TestListenRefused forbids one channel of three.
func TestListenRefused(t *testing.T) {
	r := Empty()
	r.AddUser("worker", "secret", "&open*", "+@all")
	opts := unhurried(r.Addr())
	opts.Username, opts.Password = "worker", "secret"
	c := connTo(t, redis.NewClient(opts))
	first := listen(t, c, redislock.Channel{Name: "open 1"})
	first.wantReady()
	secret := listen(t, c, redislock.Channel{Name: "secret"})
	second := listen(t, c, redislock.Channel{Name: "open 2"})
	if err := secret.wantEnd(); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("Listen ended with %v, want NOPERM", err)
	}
	second.wantReady()
	r.Must("PUBLISH", "open 1", "a")
	r.Must("PUBLISH", "open 2", "b")
	first.want("a")
	second.want("b")
}

func TestListenUnreachable(t *testing.T) {
	c := connTo(t, redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}))
	if err := listen(t, c, redislock.Channel{Name: "channel"}).wantEnd(); err == nil {
		t.Error("Listen ended without an error")
	}
}

func TestListenWrongPassword(t *testing.T) {
	r := Empty()
	opts := unhurried(r.Addr())
	opts.Username, opts.Password = "nobody", "wrong"
	c := connTo(t, redis.NewClient(opts))
	if err := listen(t, c, redislock.Channel{Name: "channel"}).wantEnd(); !redis.HasErrorPrefix(err, "WRONGPASS") {
		t.Errorf("Listen ended with %v, want WRONGPASS", err)
	}
}

// TestListenSilent lets the server fall silent without an end of the connection.
func TestListenSilent(t *testing.T) {
	t.Parallel()
	p := servers.StartProxy(t, servers.StartRedis(t).Addr())
	c := connTo(t, redis.NewClient(unhurried(p.Addr())))
	l := listen(t, c, redislock.Channel{Name: "channel"})
	l.wantReady()
	p.Replies.Hold(true)
	if err := l.wantEnd(); !errors.Is(err, errSilent) {
		t.Errorf("Listen ended with %v", err)
	}
	p.Replies.Hold(false)
	listen(t, c, l.channel).wantReady()
}

// TestListenInCluster moves the slot of one channel of many.
func TestListenInCluster(t *testing.T) {
	t.Parallel()
	cluster := servers.StartCluster(t).Calm()
	c := connTo(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), DialTimeout: limit, ReadTimeout: limit}))
	say := func(l *call, text string) {
		t.Helper()
		cluster.Owner(cluster.Slot(l.channel.Name)).Must("SPUBLISH", l.channel.Name, text)
	}
	var calls []*call
	for i := range 100 {
		calls = append(calls, listen(t, c, redislock.Channel{Name: fmt.Sprintf("{%03x}client", i), Sharded: true}))
	}
	loss := listen(t, c, redislock.Channel{Name: "client"})
	for _, l := range append(calls, loss) {
		l.wantReady()
	}
	servers.Until(t, "one connection to listen for each primary", func() bool {
		listening := 0
		for _, r := range cluster.Nodes {
			listening += subscribers(r)
		}
		return listening == 3
	})
	cluster.Nodes[0].Must("PUBLISH", "client", "loss")
	loss.want("loss")

	moved := calls[7]
	slot := cluster.Slot(moved.channel.Name)
	old := cluster.Owner(slot)
	for _, l := range calls {
		if other := cluster.Owner(cluster.Slot(l.channel.Name)); other != old {
			cluster.Migrate(slot, other)
			break
		}
	}
	if err := moved.wantEnd(); !errors.Is(err, errMoved) {
		moved.tooEarly(err)
	}
	// The client may not know yet, and be sent back.
	for deadline := time.Now().Add(limit); ; {
		moved = listen(t, c, moved.channel)
		select {
		case <-moved.ready:
		case err := <-moved.ended:
			if _, ok := redis.IsMovedError(err); !ok || time.Now().After(deadline) {
				t.Fatalf("Listen after the move ended with %v", err)
			}
			continue
		}
		break
	}
	calls[7] = moved
	for i, l := range calls {
		say(l, fmt.Sprint("after the move ", i))
	}
	for i, l := range calls {
		l.want(fmt.Sprint("after the move ", i))
	}
}
