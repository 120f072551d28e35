package stores

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func sqlite() Store {
	return Store{
		Name: "sqlite", Title: "SQLite", Waiting: 10, Modules: []string{"modernc.org/sqlite"},
		Sides: []Side{
			{Name: "Holdfast", Open: openSQLite},
			{Name: "row by hand, 5 ms", Kind: Bare, Open: openSQLiteRow},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			return &Server{At: []string{tb.TempDir()}, About: "journal_mode WAL, synchronous NORMAL"}
		},
	}
}

func openSQLite(at []string, ttl time.Duration) (*Library, error) {
	return holdfastAt([]string{"sqlite://" + filepath.Join(at[0], "locks.db")}, ttl)
}

// openSQLiteRow writes with the settings of Holdfast, from one connection, since SQLite
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
		take = `UPDATE bare SET owner = ?, expires = ? WHERE name = ? AND expires <= ?`
		add  = `INSERT INTO bare (name, owner, expires) VALUES (?, '', 0) ON CONFLICT DO NOTHING`
		free = `UPDATE bare SET owner = '', expires = 0 WHERE name = ? AND owner = ?`
	)
	return rowIn(db, add, free, func(ctx context.Context, key, owner string) (sql.Result, error) {
		now := time.Now()
		return db.ExecContext(ctx, take, owner, now.Add(ttl).UnixMicro(), key, now.UnixMicro())
	}), nil
}
