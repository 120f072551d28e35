package pooled

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/go-pg/pg/v10"
)

const unlock = "SELECT pg_advisory_unlock($1)"

func pool(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "SELECT pg_advisory_lock($1)", 42); err != nil { // want `pg_advisory_lock on a pool locks for any one connection`
		return err
	}
	_, err := db.Exec(unlock, 42) // want `pg_advisory_unlock on a pool may reach a session without the lock`
	return err
}

func format(db *sql.DB, id int) *sql.Row {
	return db.QueryRow(fmt.Sprintf("SELECT GET_LOCK('%d', 10)", id)) // want `get_lock on a pool locks for any one connection`
}

func transaction(db *sql.DB) error {
	_, err := db.Exec("SELECT pg_advisory_xact_lock(42)") // want `pg_advisory_xact_lock on a pool locks nothing`
	return err
}

func connection(ctx context.Context, conn *sql.Conn, tx *sql.Tx) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", 42); err != nil {
		return err
	}
	if _, err := tx.Exec("SELECT pg_advisory_xact_lock(42)"); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, unlock, 42)
	return err
}

func whole(db *sql.DB) error {
	_, err := db.Exec("BEGIN; SELECT pg_advisory_xact_lock(42); INSERT INTO t VALUES (1); COMMIT")
	return err
}

type store struct{ *sql.DB }

func embedded(s store) {
	_, _ = s.Exec("SELECT pg_advisory_lock(42)") // want `pg_advisory_lock on a pool locks for any one connection`
}

func ownMethods(db *pg.DB, conn *pg.Conn) {
	_, _ = db.Exec("SELECT pg_advisory_lock(42)") // want `pg_advisory_lock on a pool locks for any one connection`
	_, _ = conn.Exec("SELECT pg_advisory_lock(42)")
}
