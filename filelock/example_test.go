package filelock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/filelock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "file:///run/app/locks", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.TryLock(ctx, "backup")
	if errors.Is(err, holdfast.ErrHeld) {
		return // another process makes the backup
	}
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("one process at a time")
}

func ExampleNew() {
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	store, err := filelock.New(dir, &filelock.Options{Mode: 0o660})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(context.Background(), "backup", func(context.Context) error {
		fmt.Println("one process at a time")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: one process at a time
}
