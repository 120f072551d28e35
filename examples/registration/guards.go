package main

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/examples/guarding"
	"github.com/holdfast-go/holdfast/examples/internal/scenario"
)

// The first table lets a phone number be registered twice, the second does not.
const (
	openRegistrations   = `registrations`
	uniqueRegistrations = `unique_registrations`
)

var schema = []string{
	`CREATE TABLE IF NOT EXISTS registrations (phone varchar(64) NOT NULL, owner varchar(64) NOT NULL, PRIMARY KEY (phone, owner))`,
	`CREATE TABLE IF NOT EXISTS unique_registrations (phone varchar(64) NOT NULL PRIMARY KEY, owner varchar(64) NOT NULL)`,
}

// A site registers phone numbers.
type site struct {
	*scenario.Database
	work    func(context.Context) error // between the read and the write
	mu      sync.Mutex                  // knows nothing of other processes
	retries atomic.Int64
}

type register = func(ctx context.Context, phone, owner string) error

// guards are ways to register. An owner gets a [guarding.TakenError] if the phone
// number is registered.
func (s *site) guards() map[string]register {
	return map[string]register{
		"none":   s.none,
		"mutex":  s.mutex,
		"lock":   s.lock,
		"unique": s.unique,
		"upsert": s.upsert,
	}
}

// reasons say why other guards do not fit.
var reasons = map[string]string{
	"row":     "a phone number that is free has no row to lock",
	"version": "a phone number that is free has no row whose version could be compared",
	"update":  "a phone number that is free has no row to update",
}

func (s *site) none(ctx context.Context, phone, owner string) error {
	return s.lookAndInsert(ctx, s, phone, owner)
}

func (s *site) mutex(ctx context.Context, phone, owner string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.none(ctx, phone, owner)
}

// lock locks the phone number until the transaction ends.
func (s *site) lock(ctx context.Context, phone, owner string) error {
	return s.Tx(ctx, func(tx *sql.Tx) error {
		if err := s.LockTx(ctx, tx, "phone/"+phone); err != nil {
			return err
		}
		return s.lookAndInsert(ctx, tx, phone, owner)
	})
}

// unique relies on the index, which refuses the second row.
func (s *site) unique(ctx context.Context, phone, owner string) error {
	if err := s.lookAndWork(ctx, s, uniqueRegistrations, phone); err != nil {
		return err
	}
	_, err := s.Exec(ctx, s, `INSERT INTO unique_registrations (phone, owner) VALUES (?, ?)`, phone, owner)
	if scenario.IsDuplicate(err) {
		return s.look(ctx, s, uniqueRegistrations, phone)
	}
	return err
}

// upsert inserts the row unless the index has one, and counts the inserted rows.
func (s *site) upsert(ctx context.Context, phone, owner string) error {
	if err := s.lookAndWork(ctx, s, uniqueRegistrations, phone); err != nil {
		return err
	}
	rows, err := s.Exec(ctx, s, `INSERT INTO unique_registrations (phone, owner) VALUES (?, ?)`+s.InsertNew("phone"), phone, owner)
	if err == nil && rows == 0 {
		return s.look(ctx, s, uniqueRegistrations, phone)
	}
	return err
}

func (s *site) lookAndInsert(ctx context.Context, on scenario.Querier, phone, owner string) error {
	if err := s.lookAndWork(ctx, on, openRegistrations, phone); err != nil {
		return err
	}
	_, err := s.Exec(ctx, on, `INSERT INTO registrations (phone, owner) VALUES (?, ?)`, phone, owner)
	return err
}

func (s *site) lookAndWork(ctx context.Context, on scenario.Querier, table, phone string) error {
	if err := s.look(ctx, on, table, phone); err != nil {
		return err
	}
	return s.work(ctx)
}

// look fails if somebody has the phone number.
func (s *site) look(ctx context.Context, on scenario.Querier, table, phone string) error {
	var first string
	err := s.Row(ctx, on, `SELECT owner FROM `+table+` WHERE phone = ?`, phone).Scan(&first)
	switch {
	case err == nil:
		return &guarding.TakenError{Phone: phone, Owner: first}
	case errors.Is(err, sql.ErrNoRows):
		return nil
	}
	return err
}
