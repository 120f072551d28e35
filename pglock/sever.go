package pglock

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// closeLimit bounds the closing of a pool. After an interrupted statement, pgx waits for
// the server's confirmation, for up to fifteen seconds for each connection.
const closeLimit = time.Second

// severable returns cut, which breaks all connections made by config from now on,
// including connections made after cut.
func severable(config *pgconn.Config) (cut func()) {
	life, cut := context.WithCancel(context.Background())
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &severed{conn, context.AfterFunc(life, func() { conn.Close() })}, nil
	}
	return cut
}

// A severed connection can be broken by [severable].
type severed struct {
	net.Conn
	forget func() bool
}

func (s *severed) Close() error {
	s.forget()
	return s.Conn.Close()
}
