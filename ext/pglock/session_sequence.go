package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/identifier"
)

// A sequence gives tokens. They say nothing of those of another, so the keys of
// each are others.
type sequence struct {
	name string // with its schema, for SQL
	oid  string
}

// apart is what keeps the numbers of its keys apart from those of others. One
// that is made anew, as when a dump is restored, has those of the old, whose
// sessions may still be there.
func (q sequence) apart() uint64 {
	return digest("holdfast session sequence\x00" + q.name)
}

// inspect makes sure that the sequence is as create makes it.
func (s *sessionServer) inspect(ctx context.Context, conn *pgconn.PgConn) (sequence, error) {
	name, err := quoted(s.sequence)
	if err != nil {
		return sequence{}, err
	}
	row, err := one(ctx, conn, `SELECT relnamespace::regnamespace || '.' || quote_ident(relname), oid, seqincrement, seqcache, seqcycle, relpersistence
		FROM pg_class LEFT JOIN pg_sequence ON seqrelid = oid WHERE oid = to_regclass($1)`, name)
	switch {
	case errors.Is(err, errNoRow):
		return sequence{}, fmt.Errorf("%w: the sequence %s is missing: run holdfast init --store URL once, or Session.Create", driver.ErrInvalid, s.sequence)
	case err != nil:
		return sequence{}, err
	case strings.Join(row[2:], " ") != fmt.Sprint(span, " 1 f p"):
		return sequence{}, fmt.Errorf("%w: %s is not a sequence as session mode makes it: INCREMENT %d CACHE 1 NO CYCLE, not unlogged", driver.ErrInvalid, s.sequence, span)
	}
	return sequence{name: row[0], oid: row[1]}, nil
}

// enter joins the sessions of the sequence, and raises the sequence if there are
// none, so that nobody draws from it meanwhile.
//
// Tokens are drawn without waiting for the disk. A crash of the server may so
// lose those of the last moments, but it ends all sessions, and the first that
// comes after it raises the sequence: to the microseconds of the clock, which
// tokens do not reach below 15,000 grants a second for good, or if they have, or
// the clock was set back, by more than are ever drawn before the server writes
// its log, which it does within wal_writer_delay times three. A sequence that was
// restored from a dump is raised the same way.
func (q sequence) enter() string {
	present := strconv.Itoa(presence) + ", " + q.oid + "::oid::int"
	return `SELECT pg_advisory_xact_lock(` + openers + `);
		SELECT setval('` + q.oid + `', CASE WHEN last_value < now THEN now ELSE last_value + 16777216 END)
			FROM ` + q.name + `, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS clock
			WHERE pg_try_advisory_xact_lock(` + present + `);
		SELECT pg_advisory_lock_shared(` + present + `)`
}

// openers is the advisory lock of those who enter, or create a sequence.
var openers = strconv.FormatInt(int64(digest("holdfast session openers")), 10)

func digest(of string) uint64 {
	sum := sha256.Sum256([]byte(of))
	return binary.BigEndian.Uint64(sum[:])
}

// presence is the first half of the number of the advisory lock that all sessions
// of a sequence share. The other is the sequence's. Numbers in halves are others
// than those of keys.
const presence = 0x686f6c64

// create makes the sequence.
func (s *sessionServer) create(ctx context.Context) error {
	text, err := s.schema()
	if err != nil {
		return err
	}
	config, err := s.before.copy(ctx, s.config)
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
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
