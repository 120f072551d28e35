package pglock

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// impostor makes a database with functions that clients find in place of those of
// PostgreSQL, and returns its URL.
func impostor(t *testing.T, functions string) (url string) {
	t.Helper()
	db := server.Database(t)
	db.Must("CREATE SCHEMA impostor; SET search_path = impostor; " + functions)
	prepared(t, db.URL())
	return db.URL() + "&search_path=impostor,pg_catalog,public"
}

// lies are the functions of CockroachDB that acquire a lock: they return true, and lock
// nothing.
const lies = `
	CREATE FUNCTION pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
	CREATE FUNCTION pg_advisory_unlock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
	CREATE FUNCTION pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE sql AS 'SELECT';
	CREATE FUNCTION pg_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';`

const named = `CREATE FUNCTION version() RETURNS text LANGUAGE sql AS $$SELECT 'CockroachDB CCL v25.2.0'$$;`

// TestSessionRefusesLiars: a server whose advisory locks do not exclude is refused by its
// behavior, and by a name that is known.
func TestSessionRefusesLiars(t *testing.T) {
	needsSessions(t)
	t.Parallel()
	err := sessiontest.Refused(t, impostor(t, lies)+"&mode=session")
	expectInvalid(t, err, "PostgreSQL 1") // the name
	expectInvalid(t, err, "do not exclude: two connections asked for the same lock and got true, true")
	err = sessiontest.Refused(t, impostor(t, lies+named)+"&mode=session")
	expectInvalid(t, err, "this server is CockroachDB CCL v25.2.0, whose advisory locks lock nothing")
}

// TestSessionRefusesSeveralServers has a balancer spread connections over two servers, each
// of which excludes.
func TestSessionRefusesSeveralServers(t *testing.T) {
	needsSessions(t)
	t.Parallel()
	other := servers.StartPostgres(t, "fsync = off")
	prepared(t, other.URL())
	balancer := servers.StartBalancer(t, server.Addr(), other.Addr())
	err := sessiontest.Refused(t, strings.Replace(other.URL(), other.Addr(), balancer, 1)+"&mode=session")
	expectInvalid(t, err, "or the address leads to several servers")
}

// TestSessionDuringFailover: the first connection leads to another server than all later ones, as
// when a standby has just been promoted. That is no reason for a refusal.
func TestSessionDuringFailover(t *testing.T) {
	needsSessions(t)
	t.Parallel()
	other := servers.StartPostgres(t, "fsync = off")
	prepared(t, other.URL())
	sessiontest.FailsOver(t, func() driver.Checker {
		addrs := slices.Concat([]string{server.Addr()}, slices.Repeat([]string{other.Addr()}, 1000))
		return newSession(t, strings.Replace(other.URL(), other.Addr(), servers.StartBalancer(t, addrs...), 1))
	})
}

// TestTxRefusesCockroachDB: two transactions would hold the same lock.
func TestTxRefusesCockroachDB(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), impostor(t, lies+named))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for name, lock := range map[string]func(tx pgx.Tx) error{
		"LockTx":    func(tx pgx.Tx) error { return LockTx(t.Context(), tx, "key") },
		"TryLockTx": func(tx pgx.Tx) error { return TryLockTx(t.Context(), tx, "key", 0) },
	} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := lock(tx); err == nil || !strings.Contains(err.Error(), "the server is CockroachDB, whose advisory locks lock nothing") {
			t.Errorf("%s: got the error %v, want one that names the server", name, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
