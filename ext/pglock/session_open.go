package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/session"
	"github.com/holdfast-go/holdfast/internal/identifier"
)

// A sessionServer opens sessions with PostgreSQL.
type sessionServer struct {
	config   *pgconn.Config
	sequence string
}

// Name implements [session.Server]. The prefix keeps the numbers apart from
// those that others make of the same words.
func (s *sessionServer) Name(key string) string {
	sum := sha256.Sum256([]byte("holdfast session\x00" + key))
	return string(sum[:8])
}

// Open implements [session.Server].
func (s *sessionServer) Open(ctx context.Context, owner string, limit time.Duration, events session.Events) (session.Conn, error) {
	conn, err := s.connect(ctx, owner)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, conn, limit); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	notified := func(pid uint32, payload string) {
		if name, ok := freed(payload); ok && pid != hijacked.PID {
			events.Free(name)
		}
	}
	wire := newWire(hijacked.Conn, hijacked.Frontend, wireEvents{notified, events.Lost})
	return &sessionConn{wire: wire, limit: limit}, nil
}

// connect connects and makes sure that the server serves.
func (s *sessionServer) connect(ctx context.Context, owner string) (*pgconn.PgConn, error) {
	conn, err := s.dial(ctx, owner)
	if err != nil {
		return nil, err
	}
	if err := s.inspect(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// dial connects and makes sure that it is the server itself.
func (s *sessionServer) dial(ctx context.Context, owner string) (*pgconn.PgConn, error) {
	config := s.config.Copy()
	if owner != "" {
		// A zero byte would end it, and the message.
		config.RuntimeParams["application_name"] = strings.ReplaceAll(owner, "\x00", "?")
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	row, err := one(ctx, conn, `SELECT pg_backend_pid(), current_setting('server_version_num'), pg_is_in_recovery()`)
	if err == nil {
		err = serves(conn, row)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// serves says why a server cannot keep sessions, from what it says of itself.
func serves(conn *pgconn.PgConn, row []string) error {
	version, err := strconv.Atoi(row[1])
	switch {
	case err != nil:
		return err
	case row[0] != strconv.FormatUint(uint64(conn.PID()), 10):
		return fmt.Errorf("%w: a pooler such as PgBouncer is between here and PostgreSQL (its process is %s, not %d), and would spread one session over several: connect to the server itself, or use lease mode, without mode=session",
			driver.ErrInvalid, row[0], conn.PID())
	case version < 14_00_00:
		return fmt.Errorf("%w: session mode needs PostgreSQL 14 or newer, which can end a silent session; this one has the version number %d", driver.ErrInvalid, version)
	case row[2] == "t":
		return fmt.Errorf("the server is a standby and gives no tokens: connect to the primary, for example with target_session_attrs=read-write")
	}
	return nil
}

// inspect makes sure that the sequence is as create makes it.
func (s *sessionServer) inspect(ctx context.Context, conn *pgconn.PgConn) error {
	sequence, err := quoted(s.sequence)
	if err != nil {
		return err
	}
	row, err := one(ctx, conn, `SELECT seqincrement, seqcache, seqcycle, relpersistence
		FROM pg_class LEFT JOIN pg_sequence ON seqrelid = oid WHERE oid = to_regclass($1)`, sequence)
	switch {
	case errors.Is(err, errNoRow):
		return fmt.Errorf("%w: the sequence %s is missing: run holdfast init --store URL once, or Session.Create", driver.ErrInvalid, s.sequence)
	case err != nil:
		return err
	case strings.Join(row, " ") != fmt.Sprint(span, " 1 f p"):
		return fmt.Errorf("%w: %s is not a sequence as session mode makes it: INCREMENT %d CACHE 1 NO CYCLE, not unlogged", driver.ErrInvalid, s.sequence, span)
	}
	return nil
}

// prepare makes the session ready. Its statements wait for nothing but, for
// microseconds, for others who look for waiters.
func (s *sessionServer) prepare(ctx context.Context, conn *pgconn.PgConn, limit time.Duration) error {
	sequence, err := quoted(s.sequence)
	if err != nil {
		return err
	}
	set := `SET synchronous_commit = off; SET lock_timeout = '1s'; SET statement_timeout = 0;
		SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3; LISTEN ` + channel
	for _, sql := range []string{set, enter(sequence)} {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			return err
		}
	}
	for name, text := range statements {
		if _, err := conn.Prepare(ctx, name, strings.ReplaceAll(text, "%s", sequence), nil); err != nil {
			return err
		}
	}
	return conn.ExecPrepared(ctx, "limit", [][]byte{milliseconds(limit)}, binaryFormat, nil).Read().Err
}

// enter joins the sessions that are there, and raises the sequence if there are
// none, so that nobody draws from it meanwhile.
//
// Tokens are drawn without waiting for the disk. A crash of the server may so
// lose those of the last moments, but it ends all sessions, and the first that
// comes after it raises the sequence: to the microseconds of the clock, which
// tokens do not reach below 15,000 grants a second for good, or if they have, or
// the clock was set back, by more than are ever drawn before the server writes
// its log, which it does within wal_writer_delay times three. A sequence that was
// restored from a dump is raised the same way.
func enter(sequence string) string {
	return `SELECT pg_advisory_xact_lock(` + openers + `);
		SELECT setval('` + sequence + `', CASE WHEN last_value < now THEN now ELSE last_value + 16777216 END)
			FROM ` + sequence + `, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS clock
			WHERE pg_try_advisory_xact_lock(` + present + `);
		SELECT pg_advisory_lock_shared(` + present + `)`
}

// Advisory locks beside those of keys.
var (
	openers = number("holdfast session openers") // of those who enter, or create the sequence
	present = number("holdfast session present") // shared by all sessions
)

func number(of string) string {
	sum := sha256.Sum256([]byte(of))
	return strconv.FormatInt(int64(binary.BigEndian.Uint64(sum[:])), 10)
}

// create makes the sequence.
func (s *sessionServer) create(ctx context.Context) error {
	text, err := s.schema()
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return err
	}
	// Through a pooler too: both statements are one transaction.
	_, err = conn.Exec(ctx, `SELECT pg_advisory_xact_lock(`+openers+`); `+text).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// schema is what makes the sequence.
func (s *sessionServer) schema() (string, error) {
	sequence, err := quoted(s.sequence)
	return `CREATE SEQUENCE IF NOT EXISTS ` + sequence + ` INCREMENT BY ` + strconv.Itoa(span) + ` MAXVALUE ` + strconv.Itoa(1<<53-span), err
}

// quoted is the sequence's name for SQL.
func quoted(name string) (string, error) {
	name, err := identifier.Quote(name, "", `"`)
	if err != nil {
		return "", fmt.Errorf("%w: sequence %w", driver.ErrInvalid, err)
	}
	return name, nil
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
