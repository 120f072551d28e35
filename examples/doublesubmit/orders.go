package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"

	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
)

// orders are kept in a file that several servers of one host share.
type orders struct{ db *sql.DB }

var fences = fence.SQL{Dialect: dialect.SQLite}

func openOrders(ctx context.Context, file string) (*orders, error) {
	query := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(wal)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	// Nothing here keeps an order from being taken twice.
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (id integer PRIMARY KEY, item text NOT NULL)`)
	if err = errors.Join(err, fences.Create(ctx, db)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &orders{db}, nil
}

// add takes an order, unless its token is outdated.
func (o *orders) add(ctx context.Context, key string, token uint64, item string) (int64, error) {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := fences.Check(ctx, tx, key, token); err != nil {
		return 0, err
	}
	done, err := tx.ExecContext(ctx, `INSERT INTO orders (item) VALUES (?)`, item)
	if err != nil {
		return 0, err
	}
	id, err := done.LastInsertId()
	if err != nil {
		return 0, err
	}
	return id, tx.Commit()
}
