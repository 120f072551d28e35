package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
)

func ExampleMemory() {
	ctx := context.Background()
	var fences fence.Memory
	write := func(token uint64, text string) {
		err := fences.Check(ctx, "file/7", token, func() error {
			fmt.Println(text)
			return nil
		})
		if errors.Is(err, fence.ErrOutdated) {
			fmt.Println("rejected:", text)
		}
	}
	write(33, "written by the first holder")
	write(34, "written by the second holder")
	write(33, "written late by the first holder")
	// Output:
	// written by the first holder
	// written by the second holder
	// rejected: written late by the first holder
}

func ExampleSQL_Do() {
	var db *sql.DB             // the database that holds the accounts
	var locks *holdfast.Locker // in any store
	fences := fence.SQL{Dialect: dialect.Postgres}

	err := locks.Do(context.Background(), "account/42", func(ctx context.Context) error {
		return fences.Do(ctx, db, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = balance - 100 WHERE id = 42`)
			return err
		})
	})
	if errors.Is(err, fence.ErrOutdated) {
		log.Fatal("a later holder has been here: nothing was written")
	}
}

func ExampleSQL_Check() {
	var db *sql.DB             // the database that holds the accounts
	var locks *holdfast.Locker // in any store
	fences := fence.SQL{Dialect: dialect.Postgres}

	err := locks.Do(context.Background(), "account/42", func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fences.Check(ctx, tx, lock.Key(), lock.Fence()); err != nil {
			return err // fence.ErrOutdated: a later holder has been here
		}
		if _, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = balance - 100 WHERE id = 42`); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		log.Fatal(err)
	}
}
