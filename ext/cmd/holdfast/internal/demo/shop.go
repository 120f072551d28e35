package demo

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the stock is kept in SQLite, without a C compiler
)

//go:embed schema.sql
var schema string

// Answers to a buyer that are not failures.
var (
	errSoldOut = errors.New("sold out")
	errStale   = errors.New("refused by the fence: a later holder has written")
)

// A shop is the database that all servers share.
type shop struct{ db *sql.DB }

// openShop opens the database file at path. It does not wait for the disk,
// because the sale need not survive a power cut.
func openShop(path string) (*shop, error) {
	db, err := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=synchronous(OFF)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	return &shop{db}, nil
}

func (s *shop) create(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, schema)
	return err
}

// offer puts a new item on sale.
func (s *shop) offer(ctx context.Context, item string, stock int) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO items (id, stock) VALUES (?, ?)`, item, stock)
	return err
}

// stock is the look.
func (s *shop) stock(ctx context.Context, item string) (left int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT stock FROM items WHERE id = ?`, item).Scan(&left)
	return left, err
}

// sold counts the orders, which no race can change.
func (s *shop) sold(ctx context.Context, item string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM orders WHERE item = ?`, item).Scan(&n)
	return n, err
}

// An order is one item for one buyer.
type order struct {
	item, buyer, server string

	left   int    // the stock after it, as its server believes
	token  uint64 // of the lock, 0 without one
	fenced bool   // refuse a token that is smaller than one seen before
}

// save is the write: the new stock and the order, or neither.
func (s *shop) save(ctx context.Context, o order) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := setStock(ctx, tx, o); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO orders (item, buyer, server, fence) VALUES (?, ?, ?, ?)`,
		o.item, o.buyer, o.server, o.token)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// setStock writes the stock. The fence is checked by the statement that
// writes, so nothing fits between the two.
func setStock(ctx context.Context, tx *sql.Tx, o order) error {
	if !o.fenced {
		_, err := tx.ExecContext(ctx, `UPDATE items SET stock = ? WHERE id = ?`, o.left, o.item)
		return err
	}
	result, err := tx.ExecContext(ctx, `UPDATE items SET stock = ?, fence = ? WHERE id = ? AND fence <= ?`,
		o.left, o.token, o.item, o.token)
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err == nil && changed == 0 {
		err = fmt.Errorf("%w (token %d)", errStale, o.token)
	}
	return err
}

func (s *shop) close() error { return s.db.Close() }
