package mysqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/mysqllock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "mysql://app@localhost/app", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "report/daily", func(ctx context.Context) error {
		fmt.Println("one process at a time")
		return ctx.Err() // ctx ends if the lock is lost
	})
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleNew() {
	ctx := context.Background()
	db, err := sql.Open("mysql", "app@tcp(localhost:3306)/app?rejectReadOnly=true")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetConnMaxLifetime(5 * time.Minute)

	store, err := mysqllock.New(db, nil) // "holdfast init" has made the table
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	lock, err := locks.Lock(ctx, "account/42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("fencing token", lock.Fence())
}

// A phone number is registered once: LockTx keeps the key until the commit.
func ExampleLockTx() {
	ctx := context.Background()
	db, err := sql.Open("mysql", "app@tcp(localhost:3306)/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := mysqllock.CreateTxLocks(ctx, db); err != nil { // once
		log.Fatal(err)
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	const phone = "+15550100"
	if err := mysqllock.LockTx(ctx, tx, "phone/"+phone); err != nil { // before the first SELECT
		log.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT IGNORE INTO registrations (phone) VALUES (?)`, phone); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
}
