package zklock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "zk://h1:2181,h2:2181,h3:2181/app", nil)
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
	store, err := zklock.New([]string{"h1:2181", "h2:2181", "h3:2181"}, &zklock.Options{Chroot: "/app"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.Lock(context.Background(), "account/42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("fencing token", lock.Fence())
}
