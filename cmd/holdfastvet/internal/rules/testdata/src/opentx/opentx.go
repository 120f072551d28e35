package opentx

import (
	"context"
	"database/sql"

	"github.com/go-redsync/redsync/v4"
	"github.com/jmoiron/sqlx"
	"gorm.io/gorm"
)

func begun(ctx context.Context, db *sql.DB, mutex *redsync.Mutex) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := mutex.LockContext(ctx); err != nil { // want `LockContext waits inside an open transaction`
		return err
	}
	defer mutex.Unlock()
	return tx.Commit()
}

func withoutError(db *gorm.DB, mutex *redsync.Mutex) error {
	tx := db.Begin()
	if err := mutex.Lock(); err != nil { // want `Lock waits inside an open transaction`
		tx.Rollback()
		return err
	}
	defer mutex.Unlock()
	return tx.Commit().Error
}

func extended(db *sqlx.DB, mutexes []*redsync.Mutex) error {
	tx, err := db.Beginx()
	if err != nil {
		return err
	}
	for _, mutex := range mutexes {
		if err := mutex.Lock(); err != nil { // want `Lock waits inside an open transaction`
			return tx.Rollback()
		}
	}
	err = tx.Commit()
	for _, mutex := range mutexes {
		mutex.Unlock()
	}
	return err
}

func literal(db *gorm.DB, mutex *redsync.Mutex) error {
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := mutex.Lock(); err != nil { // want `Lock waits inside an open transaction`
			return err
		}
		return save(tx)
	})
	mutex.Unlock()
	return err
}

func before(ctx context.Context, db *sql.DB, mutex *redsync.Mutex) error {
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.Unlock()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	return tx.Commit()
}

func afterwards(db *sql.DB, mutex *redsync.Mutex) error {
	tx, err := db.Begin()
	if err != nil {
		if err := mutex.Lock(); err != nil {
			return err
		}
		defer mutex.Unlock()
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	return nil
}

func advisory(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT pg_advisory_xact_lock(42)"); err != nil {
		return err
	}
	return tx.Commit()
}

func save(*gorm.DB) error { return nil }
