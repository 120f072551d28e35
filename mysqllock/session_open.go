package mysqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/identifier"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/session"
)

// A sessionServer opens sessions with MySQL or MariaDB.
type sessionServer struct {
	config *mysql.Config
	table  string // as named in the options
	quoted string
	polls  bool        // see SessionOptions.Poll
	proved atomic.Bool // see prove
}

// Name implements [session.Server]. GET_LOCK locks span the whole server; the name
// therefore includes the table and its database. Tokens of two tables are unrelated. The
// case of the table and database name does not matter.
func (s *sessionServer) Name(key string) string {
	table := s.table
	if !strings.Contains(table, ".") {
		table = s.config.DBName + "." + table
	}
	sum := sha256.Sum256([]byte("holdfast session\x00" + strings.ToLower(table) + "\x00" + key))
	return hex.EncodeToString(sum[:24])
}

// rows is how many rows give tokens. A key has one row; only keys with the same row wait
// for each other's commit.
const rows = 64

// row is the number of the row for the lock of this name.
func row(name string) int {
	b, _ := hex.DecodeString(name[:2]) // the hexadecimal result of Name
	return int(b[0]) % rows
}

// Open implements [session.Server].
func (s *sessionServer) Open(ctx context.Context, owner string, limit time.Duration, events session.Events) (session.Conn, error) {
	c := newSessionConn(s, events)
	conn, err := s.connect(ctx, owner, c.endIf)
	if err != nil {
		return nil, err
	}
	if err := setWaitTimeout(ctx, conn, limit); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if c.role, err = readOnly(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c.conn, c.table, c.limit = conn, s.quoted, limit
	go c.run()
	return c, nil
}

// A conn is one connection, and the pool of database/sql around it.
type conn struct {
	*sql.Conn
	db *sql.DB
}

func (c *conn) Close() error { return errors.Join(c.Conn.Close(), c.db.Close()) }

// connect connects and checks that the server can keep sessions. If ending is not nil,
// connect arranges calls of ending when the server has ended the connection, and before the
// client closes the connection, unless only the client knows how to dial.
func (s *sessionServer) connect(ctx context.Context, owner string, ending func(error)) (*conn, error) {
	c, err := s.dial(ctx, owner, ending)
	if err != nil {
		return nil, err
	}
	err = s.inspect(ctx, c)
	if err == nil {
		err = s.prove(ctx, c)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (s *sessionServer) dial(ctx context.Context, owner string, ending func(error)) (*conn, error) {
	config := s.config.Clone()
	if config.Params == nil {
		config.Params = make(map[string]string)
	}
	maps.Copy(config.Params, settled)
	config.MultiStatements = true // a lock and its token are one round trip
	config.ReadTimeout = 0        // keepAlive of package session decides when the session is over
	config.RejectReadOnly = false // the session then ends on its own, with the reason
	if owner != "" {
		config.ConnectionAttributes = "holdfast_owner:" + strings.ReplaceAll(owner, ",", " ")
	}
	if dial := dialer(config); ending != nil && dial != nil {
		config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return newPump(conn, ending), nil
		}
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	only, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &conn{only, db}, nil
}

// dialer is how config connects, nil if only the client knows.
func dialer(config *mysql.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	switch {
	case config.DialFunc != nil:
		return config.DialFunc
	case config.Net == "tcp" || config.Net == "unix":
		return (&net.Dialer{Timeout: config.Timeout}).DialContext
	}
	return nil
}

const noSuchTable = 1146

// inspect checks that the session can have several locks, and that the table is as create
// makes it.
func (s *sessionServer) inspect(ctx context.Context, c *conn) error {
	var several bool
	probe := func(n int) string { return fmt.Sprintf("CONCAT('holdfast probe %d ', CONNECTION_ID())", n) }
	err := c.QueryRowContext(ctx, fmt.Sprintf(`SET @one = GET_LOCK(%[1]s, 0), @two = GET_LOCK(%[2]s, 0);
		SELECT @one = 1 AND @two = 1 AND RELEASE_LOCK(%[1]s) = 1 AND RELEASE_LOCK(%[2]s) = 1`, probe(1), probe(2))).Scan(&several)
	if err == nil && !several {
		err = fmt.Errorf("%w: session mode needs MySQL 5.7.5 or MariaDB 10.0.2 or newer, where a session can have several locks", driver.ErrInvalid)
	}
	if err != nil {
		return err
	}
	var n int
	err = c.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+s.quoted).Scan(&n)
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) && e.Number == noSuchTable || err == nil && n != rows {
		return fmt.Errorf("%w: the table %s, which gives tokens, is missing or incomplete: run \"holdfast init\" once with the URL of this store, or Session.Create", driver.ErrInvalid, s.table)
	}
	return err
}

// setWaitTimeout makes the server end the session after a silence of limit.
func setWaitTimeout(ctx context.Context, c *conn, limit time.Duration) error {
	_, err := c.ExecContext(ctx, fmt.Sprintf("SET SESSION wait_timeout = %d", int64((limit+time.Second-1)/time.Second)))
	return err
}

// readOnly is the setting of the server that says whether the server takes writes.
func readOnly(ctx context.Context, c *conn) (setting string, err error) {
	err = c.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&setting)
	return setting, err
}

// createPause is the pause before create tries again.
const createPause = 50 * time.Millisecond

// create makes the table and its rows. create retries while another connection, such as that of a
// dump or of a deployment at the same time, keeps the table or a row locked.
func (s *sessionServer) create(ctx context.Context) (err error) {
	c, err := s.dial(ctx, "", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var busy error
	for {
		_, err := c.ExecContext(ctx, strings.Join(s.schema(), "; "))
		switch {
		case locked(err) || deadlocked(err):
			busy = err
		case err == nil || busy == nil || ctx.Err() == nil:
			return err
		}
		if rest.For(ctx, createPause) != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), busy)
		}
	}
}

// schema is the SQL that makes the table and its rows.
func (s *sessionServer) schema() []string {
	values := make([]string, rows)
	for i := range values {
		values[i] = fmt.Sprintf("(%d, 0)", i)
	}
	return []string{
		"CREATE TABLE IF NOT EXISTS " + s.quoted + " (id SMALLINT PRIMARY KEY, fence BIGINT NOT NULL) ENGINE = InnoDB",
		"INSERT IGNORE INTO " + s.quoted + " VALUES " + strings.Join(values, ", "),
	}
}

// quoted is the table's name for SQL.
func quoted(name string) (string, error) {
	name, err := identifier.Quote(name, "", "`")
	if err != nil {
		return "", fmt.Errorf("%w: table %w", driver.ErrInvalid, err)
	}
	return name, nil
}
