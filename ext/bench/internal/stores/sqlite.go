package stores

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

func sqlite() Store {
	return Store{
		Name: "sqlite", Title: "SQLite",
		Sides: []Side{
			{Name: "Holdfast", Open: openSQLite},
			{Name: "row by hand, 5 ms", Kind: Bare, Open: openSQLiteRow},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server { return &Server{At: []string{tb.TempDir()}} },
	}
}

func openSQLite(at []string, ttl time.Duration) (*Library, error) {
	return holdfastAt([]string{"sqlite://" + filepath.Join(at[0], "locks.db")}, ttl)
}

// openSQLiteRow writes with the settings of ours, from one connection, since SQLite
// has one writer at a time.
func openSQLiteRow(at []string, ttl time.Duration) (*Library, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(at[0], "bare.db")+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE IF NOT EXISTS bare (name TEXT PRIMARY KEY, owner TEXT, expires INTEGER) WITHOUT ROWID`)
	if err != nil {
		return nil, err
	}
	const (
		take = `INSERT INTO bare (name, owner, expires) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires = excluded.expires WHERE bare.expires <= ?`
		free = `UPDATE bare SET owner = '', expires = 0 WHERE name = ? AND owner = ?`
	)
	return bareRow(
		func(ctx context.Context, key, owner string) (bool, error) {
			now := time.Now()
			return affected(db.ExecContext(ctx, take, key, owner, now.Add(ttl).UnixMicro(), now.UnixMicro()))
		},
		func(ctx context.Context, key, owner string) (bool, error) {
			return affected(db.ExecContext(ctx, free, key, owner))
		},
		func() { _ = db.Close() },
	), nil
}

// affected reports whether a statement has changed a row.
func affected(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
