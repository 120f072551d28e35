package redislock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redislock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "redis://localhost:6379", nil)
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
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	store, err := redislock.New(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
		return client.Do(ctx, client.B().Incrby().Key("balance/42").Increment(-100).Build()).Error()
	})
	if err != nil {
		log.Fatal(err)
	}
}
