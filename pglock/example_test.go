package pglock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/pglock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "postgres://app@localhost/app", nil)
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
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	store, err := pglock.New(pool, nil) // "holdfast init" has made the table
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
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	const phone = "+15550100"
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := pglock.LockTx(ctx, tx, "phone/"+phone); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO registrations (phone) VALUES ($1) ON CONFLICT DO NOTHING`, phone)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
