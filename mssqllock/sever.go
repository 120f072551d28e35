package mssqllock

import (
	"context"
	"net"
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
func severable(config msdsn.Config) (connector *mssql.Connector, sever func()) {
	life, sever := context.WithCancel(context.Background())
	connector = mssql.NewConnectorConfig(config)
	connector.Dialer = mortal{life}
	return connector, sever
}

// A mortal dialer makes connections that end with life.
type mortal struct{ life context.Context }

func (m mortal) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
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
