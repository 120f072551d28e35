package refused

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"gorm.io/gorm"
)

func dropped(mutex *redsync.Mutex) {
	mutex.Lock() // want `the error of Lock is dropped`
	defer mutex.Unlock()
}

func blank(ctx context.Context, client *redislock.Client) {
	lock, _ := client.Obtain(ctx, "key", time.Minute, nil) // want `the error of Obtain is dropped`
	defer lock.Release(context.Background())
}

func logged(mutex *redsync.Mutex) {
	if err := mutex.Lock(); err != nil { // want `if Lock fails, the function goes on to the release in line 29`
		log.Print(err)
	}
	defer mutex.Unlock()
}

func row(tx *sql.Tx, db *gorm.DB) {
	tx.Exec("SELECT pg_try_advisory_xact_lock(42)") // want `pg_try_advisory_xact_lock answers with a row`
	db.Exec("SELECT GET_LOCK('key', 10)")           // want `get_lock answers with a row`
}

func scanned(tx *sql.Tx) (locked bool, err error) {
	err = tx.QueryRow("SELECT pg_try_advisory_xact_lock(42)").Scan(&locked)
	return locked, err
}

func returned(mutex *redsync.Mutex) error {
	err := mutex.Lock()
	if err != nil {
		log.Print(err)
		return err
	}
	defer mutex.Unlock()
	return nil
}

func branches(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil
	} else if err != nil {
		return err
	}
	defer lock.Release(context.Background())
	return nil
}

func optional(ctx context.Context, client *redislock.Client) {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		log.Print(err)
	}
	if lock != nil {
		defer lock.Release(context.Background())
	}
}

func again(mutex *redsync.Mutex) {
	for {
		if err := mutex.Lock(); err != nil {
			time.Sleep(time.Second)
			continue
		}
		break
	}
	defer mutex.Unlock()
}

func handed(mutex *redsync.Mutex) error { return mutex.Lock() }

func declare(ctx context.Context, client *redislock.Client) {
	var lock, _ = client.Obtain(ctx, "key", time.Minute, nil) // want `the error of Obtain is dropped`
	defer lock.Release(context.Background())
}

func compared(mutex *redsync.Mutex) {
	if mutex.Lock() != nil { // want `if Lock fails, the function goes on to the release`
		log.Print("held")
	}
	defer mutex.Unlock()
}

func switched(mutex *redsync.Mutex) error {
	err := mutex.Lock()
	switch err {
	case nil:
		defer mutex.Unlock()
		return nil
	case context.Canceled:
		return nil
	}
	return err
}

func tries(mutex *redsync.Mutex) {
	locked := false
	for range 3 {
		if err := mutex.Lock(); err == nil {
			locked = true
			break
		}
	}
	if !locked {
		return
	}
	defer mutex.Unlock()
}

func counted(mutex *redsync.Mutex) error {
	n := 0
	for ; n < 3; n++ {
		if err := mutex.Lock(); err == nil {
			break
		}
	}
	if n == 3 {
		return errors.New("held")
	}
	_, err := mutex.Unlock()
	return err
}

func wrapped(mutex *redsync.Mutex) error {
	err := mutex.Lock()
	if err != nil {
		err = errors.Join(errors.New("lock"), err)
	}
	if err != nil {
		return err
	}
	defer mutex.Unlock()
	return nil
}

func asked(mutex *redsync.Mutex) {
	err := mutex.Lock()
	if fine(err) {
		defer mutex.Unlock()
	}
}

func fine(err error) bool { return err == nil }
