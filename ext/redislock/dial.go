package redislock

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// A dialFunc makes a connection, as rueidis wants it.
type dialFunc = func(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error)

// A dialer makes the connections of one client, counts them, and when it is closed ends
// those that the client has lost. rueidis v1.0.79 loses one that it is making while it
// closes, or while a failover makes it start afresh: mux._pipe stores it where mux.Close
// has left its mark, and nobody looks there again.
type dialer struct {
	scheme string
	dials  atomic.Uint64 // that were asked for

	mu   sync.Mutex
	open map[*tracked]struct{} // nil once it is closed
}

// A tracked connection is one of a dialer's that is open.
type tracked struct {
	net.Conn
	dialer *dialer
}

func newDialer(scheme string) *dialer {
	return &dialer{scheme: scheme, open: make(map[*tracked]struct{})}
}

// dial is a dialFunc. Once the dialer is closed it fails.
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

// add reports false if the dialer is closed.
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
		return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", addr)
	}
	return d.DialContext(ctx, "tcp", addr)
}

// Close implements [net.Conn].
func (t *tracked) Close() error {
	t.dialer.mu.Lock()
	delete(t.dialer.open, t)
	t.dialer.mu.Unlock()
	return t.Conn.Close()
}

// close ends all connections that are still open, and those that are being made as soon
// as they stand.
func (d *dialer) close() {
	d.mu.Lock()
	left := d.open
	d.open = nil
	d.mu.Unlock()
	for t := range left {
		t.Conn.Close()
	}
}
