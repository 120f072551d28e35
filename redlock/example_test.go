package redlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/redlock"
)

// The program imports package redislock as well, which opens the nodes.
func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "redlock://redis1:6379,redis2:6379,redis3:6379", nil)
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

// The nodes are stores of any kind, such as redislock.New or goredis.New makes.
func ExampleNew() {
	ctx := context.Background()
	var nodes []driver.Store
	for _, url := range []string{"redis://redis1:6379", "redis://redis2:6379", "redis://redis3:6379"} {
		node, err := driver.Open(ctx, url)
		if err != nil {
			log.Fatal(err)
		}
		nodes = append(nodes, node)
	}
	store, err := redlock.New(nodes, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close() // closes the nodes as well

	lock, err := locks.Lock(ctx, "account/42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("fencing token", lock.Fence())
}
