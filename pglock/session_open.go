package pglock

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/session"
)

// A sessionServer opens sessions with PostgreSQL.
type sessionServer struct {
	config   *pgx.ConnConfig
	before   beforeConnect
	sequence string // as named in the options
	quoted   string
	proved   atomic.Bool // see prove
}

// Name implements [session.Server]. The prefix separates the numbers from those of other
// programs that hash the same words. A session mixes the number of its sequence into the
// numbers.
func (s *sessionServer) Name(key string) string {
	sum := sha256.Sum256([]byte("holdfast session\x00" + key))
	return string(sum[:8])
}

// Open implements [session.Server].
func (s *sessionServer) Open(ctx context.Context, owner string, limit time.Duration, events session.Events) (session.Conn, error) {
	conn, at, err := s.connect(ctx, owner)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, conn, at, limit); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	c := &sessionConn{limit: limit, apart: at.apart()}
	notified := func(pid uint32, payload string) {
		if name, ok := c.freed(payload); ok && pid != hijacked.PID {
			events.Free(name)
		}
	}
	c.wire = newWire(hijacked.Conn, hijacked.Frontend, wireEvents{notified, events.Ending, events.Lost})
	return c, nil
}

// connect connects, makes sure that the server is fit for sessions, and finds the
// sequence.
func (s *sessionServer) connect(ctx context.Context, owner string) (*pgconn.PgConn, sequence, error) {
	conn, err := s.dial(ctx, owner)
	if err != nil {
		return nil, sequence{}, err
	}
	at, err := s.inspect(ctx, conn)
	if err == nil {
		err = s.prove(ctx, conn)
	}
	if err != nil {
		return nil, sequence{}, errors.Join(err, conn.Close(ctx))
	}
	return conn, at, nil
}

// dial connects, and makes sure that the server itself answers.
func (s *sessionServer) dial(ctx context.Context, owner string) (*pgconn.PgConn, error) {
	config, err := s.before.copy(ctx, s.config)
	if err != nil {
		return nil, err
	}
	if owner != "" {
		// A zero byte would end the name, and the message.
		config.RuntimeParams["application_name"] = strings.ReplaceAll(owner, "\x00", "?")
	}
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return nil, err
	}
	row, err := one(ctx, conn, `SELECT pg_backend_pid(), current_setting('server_version_num'), pg_is_in_recovery(), version()`)
	if err == nil {
		err = serves(conn.PID(), row)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// serves returns why a server cannot keep sessions, judging by row, the server's answers
// about itself. pid is the process that answered when the connection was made.
func serves(pid uint32, row []string) error {
	if strings.HasPrefix(row[3], cockroach) {
		return fmt.Errorf("%w: this server is %s, whose advisory locks lock nothing: session mode needs PostgreSQL", driver.ErrInvalid, row[3])
	}
	version, err := strconv.Atoi(row[1])
	switch {
	case err != nil:
		return err
	case row[0] != strconv.FormatUint(uint64(pid), 10):
		return fmt.Errorf("%w: a pooler such as PgBouncer is between here and PostgreSQL (its process is %s, not %d), and would spread one session over several: connect to the server itself, or use lease mode, without mode=session",
			driver.ErrInvalid, row[0], pid)
	case version < 14_00_00:
		return fmt.Errorf("%w: session mode needs PostgreSQL 14 or newer, which can end a silent session; this one has the version number %d", driver.ErrInvalid, version)
	case row[2] == "t":
		return fmt.Errorf("the server is a standby and gives no tokens: connect to the primary, for example with target_session_attrs=read-write")
	}
	return nil
}

// prepare makes the session ready. The statements wait for nothing, except for
// microseconds while other sessions look for waiters.
func (s *sessionServer) prepare(ctx context.Context, conn *pgconn.PgConn, at sequence, limit time.Duration) error {
	set := `SET synchronous_commit = off; SET lock_timeout = '1s'; SET statement_timeout = 0;
		SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3; LISTEN ` + channel
	for _, sql := range []string{set, at.enter()} {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			return err
		}
	}
	for name, text := range statements {
		if _, err := conn.Prepare(ctx, name, strings.ReplaceAll(text, "%s", at.oid), nil); err != nil {
			return err
		}
	}
	return conn.ExecPrepared(ctx, "limit", [][]byte{milliseconds(limit)}, binaryFormat, nil).Read().Err
}

var errNoRow = errors.New("the query has no row")

// one returns the first row of a query, as text.
func one(ctx context.Context, conn *pgconn.PgConn, sql string, params ...string) ([]string, error) {
	values := make([][]byte, len(params))
	for i, p := range params {
		values[i] = []byte(p)
	}
	result := conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	if len(result.Rows) == 0 {
		return nil, errNoRow
	}
	row := make([]string, len(result.Rows[0]))
	for i, value := range result.Rows[0] {
		row[i] = string(value)
	}
	return row, nil
}
