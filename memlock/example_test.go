package memlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "mem://", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "report/daily", func(context.Context) error {
		fmt.Println("one goroutine at a time")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: one goroutine at a time
}

func ExampleNew() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.Lock(context.Background(), "account/42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println(lock.Key(), lock.Err())
	// Output: account/42 <nil>
}
