package mssqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	_ "github.com/microsoft/go-mssqldb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/mssqllock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "sqlserver://app:password@localhost?database=app", nil)
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
	db, err := sql.Open("sqlserver", "sqlserver://app:password@localhost?database=app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetConnMaxLifetime(5 * time.Minute)

	store, err := mssqllock.New(db, nil) // "holdfast init" has made the table
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
	db, err := sql.Open("sqlserver", "sqlserver://app:password@localhost?database=app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	const phone = "+15550100"
	if err := mssqllock.LockTx(ctx, tx, "phone/"+phone); err != nil {
		log.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO registrations (phone) VALUES (@p1)`, phone); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
}
