package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// A dialFunc makes a connection, with the signature that rueidis uses.
type dialFunc = func(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error)

// A dialer makes and counts the connections of one client. On close, the dialer also ends
// connections that the client has lost. rueidis v1.0.79 loses a connection that is being
// made while the client closes, or while the client starts afresh after a failover:
// mux._pipe stores the connection where mux.Close has left its mark, and nothing looks
// there again.
type dialer struct {
	scheme string
	dials  atomic.Uint64 // dials that were requested

	mu   sync.Mutex
	open map[*tracked]struct{} // nil once the dialer is closed
}

// A tracked connection is an open connection of a dialer.
type tracked struct {
	net.Conn
	dialer *dialer
}

func newDialer(scheme string) *dialer {
	return &dialer{scheme: scheme, open: make(map[*tracked]struct{})}
}

// dial is a dialFunc. On a closed dialer, dial fails.
func (d *dialer) dial(ctx context.Context, addr string, n *net.Dialer, config *tls.Config) (net.Conn, error) {
	d.dials.Add(1)
	conn, err := connection(ctx, d.scheme, addr, n, config)
	if err != nil {
		return nil, err
	}
	t := &tracked{conn, d}
	if !d.add(t) {
		conn.Close()
		return nil, errClosed
	}
	return t, nil
}

// add returns false if the dialer is closed.
func (d *dialer) add(t *tracked) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		return false
	}
	d.open[t] = struct{}{}
	return true
}

func connection(ctx context.Context, scheme, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	switch {
	case scheme == "unix":
		return d.DialContext(ctx, "unix", addr)
	case config != nil:
		conn, err := (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", addr)
		return conn, unsecured(addr, err)
	}
	return d.DialContext(ctx, "tcp", addr)
}

// unsecured explains why a server has not answered the first message of TLS. Redis
// without TLS takes the message for the start of a command and waits for the rest.
func unsecured(addr string, err error) error {
	if dialing := (*net.OpError)(nil); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &dialing) && dialing.Op == "dial" {
		return err
	}
	return fmt.Errorf("%s does not answer in TLS: if the server speaks none, the scheme is redis:// (%v)", addr, err) // does not wrap err: err is not the end of the caller's context
}

// Close implements [net.Conn].
func (t *tracked) Close() error {
	t.dialer.mu.Lock()
	delete(t.dialer.open, t)
	t.dialer.mu.Unlock()
	return t.Conn.Close()
}

// close ends all open connections. Connections that are still being made end as soon as
// they are established.
func (d *dialer) close() {
	d.mu.Lock()
	left := d.open
	d.open = nil
	d.mu.Unlock()
	for t := range left {
		t.Conn.Close()
	}
}
