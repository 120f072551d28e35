package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/sqllock"
)

// The locks are in a table of the database that the program uses anyway.
func ExampleNew() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://app@localhost/app") // or the *sql.DB that you have
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	store, err := sqllock.New(db, dialect.Postgres, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // once, as a user who may create tables
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
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
