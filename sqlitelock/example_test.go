package sqlitelock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlitelock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "sqlite:///var/lib/app/locks.db", nil)
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
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	db, err := sql.Open("sqlite", filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqlitelock.New(db, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(ctx); err != nil { // makes the table if it is missing
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(ctx, "account/42", func(context.Context) error {
		fmt.Println("one process at a time")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: one process at a time
}
