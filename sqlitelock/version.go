package sqlitelock

import (
	"context"
	"database/sql"
)

// A version reports whether there were commits since the last call of changed. It has a
// connection of its own; commits of every other connection count, also from this process.
type version struct {
	db   *sql.DB
	stmt *sql.Stmt
	last int64
}

func openVersion(path string) (*version, error) {
	db, err := openDB(path, "query_only(1)")
	if err != nil {
		return nil, err
	}
	return &version{db: db}, nil
}

// changed compares a counter that is only valid within one connection.
func (v *version) changed() (bool, error) {
	now, err := v.read()
	if err != nil && v.stmt != nil {
		v.stmt.Close()
		v.stmt, v.last = nil, 0
	}
	if err != nil || now == v.last {
		return false, err
	}
	v.last = now
	return true, nil
}

func (v *version) read() (now int64, err error) {
	ctx := context.Background()
	if v.stmt == nil {
		if v.stmt, err = v.db.PrepareContext(ctx, `PRAGMA data_version`); err != nil {
			return 0, err
		}
	}
	err = v.stmt.QueryRowContext(ctx).Scan(&now)
	return now, err
}

func (v *version) close() {
	if v.stmt != nil {
		v.stmt.Close()
	}
	v.db.Close()
}
