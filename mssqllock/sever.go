package mssqllock

import (
	"context"
	sqldriver "database/sql/driver"
	"net"
	"sync"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/holdfast-go/holdfast/internal/detached"
)

// closeLimit bounds the end of statements at Close: as long as statements may take whose
// callers have left. The client waits for five more seconds until the server has confirmed
// that a statement is interrupted.
const closeLimit = detached.Grace + 500*time.Millisecond

// severable returns a connector, and sever, which breaks all its connections, now and later.
func severable(config msdsn.Config) (c sqldriver.Connector, sever func()) {
	life, sever := context.WithCancel(context.Background())
	client := mssql.NewConnectorConfig(config)
	client.Dialer = mortal{life, net.Dialer{KeepAlive: config.KeepAlive}}
	return &connector{client, config.DialTimeout}, sever
}

// A connector logs in to the end, even if the context ends. If a login is cancelled, the client
// reuses the buffer of the connection while another goroutine still reads into the buffer.
// Instead, the connection itself ends after the limit.
type connector struct {
	*mssql.Connector
	limit time.Duration
}

// Connect implements [sqldriver.Connector].
func (c *connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := &dialled{until: time.Now().Add(c.limit)}
	conn, err := c.Connector.Connect(context.WithValue(context.WithoutCancel(ctx), dialKey{}, d))
	d.done()
	return conn, err
}

type dialKey struct{}

// dialled are the connections of a login.
type dialled struct {
	until time.Time

	mu    sync.Mutex
	conns []net.Conn
}

func (d *dialled) add(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conn)
	_ = conn.SetDeadline(d.until)
}

// done lifts the limit.
func (d *dialled) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		_ = conn.SetDeadline(time.Time{})
	}
}

// A mortal dialer makes connections that end with life.
type mortal struct {
	life   context.Context
	dialer net.Dialer
}

func (m mortal) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := m.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if d, ok := ctx.Value(dialKey{}).(*dialled); ok {
		d.add(conn)
	}
	return &severed{conn, context.AfterFunc(m.life, func() { conn.Close() })}, nil
}

// A severed connection ends with the life of its dialer.
type severed struct {
	net.Conn
	forget func() bool
}

func (s *severed) Close() error {
	if !s.forget() {
		return nil
	}
	return s.Conn.Close()
}
