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

// A sequence gives tokens. Tokens of two sequences cannot be compared, so each sequence
// has its own keys.
type sequence struct {
	name string // with its schema, for SQL
	oid  string
}

// apart returns the number that separates the keys of a sequence from the keys of other
// sequences. A sequence that is made anew, for example from a dump, has the number of the
// old sequence, because sessions of the old sequence may still be there.
func (q sequence) apart() uint64 {
	return digest("holdfast session sequence\x00" + q.name)
}

// inspect makes sure that the sequence is as create makes it.
func (s *sessionServer) inspect(ctx context.Context, conn *pgconn.PgConn) (sequence, error) {
	row, err := one(ctx, conn, `SELECT relnamespace::regnamespace || '.' || quote_ident(relname), oid, seqincrement, seqcache, seqcycle, relpersistence, seqmax < 1::bigint << 53
		FROM pg_class LEFT JOIN pg_sequence ON seqrelid = oid WHERE oid = to_regclass($1)`, s.quoted)
	switch {
	case errors.Is(err, errNoRow):
		return sequence{}, fmt.Errorf("%w: the sequence %s is missing: run \"holdfast init\" once with the URL of this store, or Session.Create", driver.ErrInvalid, s.sequence)
	case err != nil:
		return sequence{}, err
	case strings.Join(row[2:], " ") != fmt.Sprint(span, " 1 f p t"):
		return sequence{}, fmt.Errorf("%w: %s is not a sequence as session mode makes it: INCREMENT %d MAXVALUE %d CACHE 1 NO CYCLE, not unlogged", driver.ErrInvalid, s.sequence, span, 1<<53-span)
	}
	return sequence{name: row[0], oid: row[1]}, nil
}

// enter joins the sessions of the sequence. If there are no other sessions, and so no
// session that could draw tokens meanwhile, enter first raises the sequence.
//
// Tokens are drawn without waiting for the disk, so a crash of the server may lose the
// last draws. But a crash ends all sessions, and the first session afterwards raises the
// sequence. The sequence is raised to the microseconds of the clock, which tokens do not
// reach below 15,000 grants a second for good. If tokens have reached the clock, or the
// clock was set back, the sequence is raised by more than is ever drawn before the server
// writes its log. The server writes its log within three times wal_writer_delay. A
// sequence that was restored from a dump is raised in the same way.
func (q sequence) enter() string {
	present := strconv.Itoa(presence) + ", " + q.oid + "::oid::int"
	return `SELECT pg_advisory_xact_lock(` + openers + `);
		SELECT setval('` + q.oid + `', CASE WHEN last_value < now THEN now ELSE last_value + 16777216 END)
			FROM ` + q.name + `, (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS clock
			WHERE pg_try_advisory_xact_lock(` + present + `);
		SELECT pg_advisory_lock_shared(` + present + `)`
}

// openers is the advisory lock for entering, and for creating a sequence.
var openers = strconv.FormatInt(int64(digest("holdfast session openers")), 10)

func digest(of string) uint64 {
	sum := sha256.Sum256([]byte(of))
	return binary.BigEndian.Uint64(sum[:])
}

// presence is the first half of the number of the advisory lock that all sessions of a
// sequence share. The second half is the sequence's OID. Numbers in halves never equal
// the numbers of keys.
const presence = 0x686f6c64

// create makes the sequence.
func (s *sessionServer) create(ctx context.Context) error {
	config, err := s.before.copy(ctx, s.config)
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return err
	}
	// Works through a pooler, too: both statements are one transaction.
	_, err = conn.Exec(ctx, `SELECT pg_advisory_xact_lock(`+openers+`); `+s.schema()).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// schema returns the statement that makes the sequence.
func (s *sessionServer) schema() string {
	return `CREATE SEQUENCE IF NOT EXISTS ` + s.quoted + ` INCREMENT BY ` + strconv.Itoa(span) + ` MAXVALUE ` + strconv.Itoa(1<<53-span)
}

// quoted returns the sequence's name for SQL.
func quoted(name string) (string, error) {
	name, err := identifier.Quote(name, "", `"`)
	if err != nil {
		return "", fmt.Errorf("%w: sequence %w", driver.ErrInvalid, err)
	}
	return name, nil
}
