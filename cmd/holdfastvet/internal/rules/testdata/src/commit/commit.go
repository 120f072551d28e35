package commit

import (
	"database/sql"

	"github.com/go-redsync/redsync/v4"
	"gorm.io/gorm"
)

func inside(db *gorm.DB, mutex *redsync.Mutex) error {
	return db.Transaction(func(tx *gorm.DB) error {
		if err := mutex.Lock(); err != nil {
			return err
		}
		defer mutex.Unlock() // want `the release comes before the commit of the transaction around`
		return save(tx)
	})
}

func early(db *sql.DB, mutex *redsync.Mutex) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		mutex.Unlock()
		return err
	}
	if err := write(tx); err != nil {
		mutex.Unlock()
		return tx.Rollback()
	}
	mutex.Unlock() // want `the release comes before the commit in line 34`
	return tx.Commit()
}

func loop(db *sql.DB, mutexes []*redsync.Mutex) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	for _, mutex := range mutexes {
		m := mutex
		if err := m.Lock(); err != nil {
			return tx.Rollback()
		}
		err := write(tx)
		if ok, err := m.Unlock(); !ok || err != nil { // want `the release comes before the commit in line 55`
			return tx.Rollback()
		}
		if err != nil {
			return tx.Rollback()
		}
	}
	return tx.Commit()
}

func outside(db *gorm.DB, mutex *redsync.Mutex) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	return db.Transaction(func(tx *gorm.DB) error { return save(tx) })
}

func twice(db *sql.DB, mutex *redsync.Mutex) error {
	for range 2 {
		if err := mutex.Lock(); err != nil {
			return err
		}
		tx, err := db.Begin()
		if err == nil {
			err = tx.Commit()
		}
		mutex.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func afterwards(db *sql.DB, mutex *redsync.Mutex) error {
	if err := mutex.Lock(); err != nil {
		return err
	}
	mutex.Unlock()
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	return tx.Commit()
}

func write(*sql.Tx) error { return nil }

func save(*gorm.DB) error { return nil }
