package goredis_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redislock/goredis"
)

func Example() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()

	store, err := goredis.New(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
		return client.IncrBy(ctx, "balance/42", -100).Err() // ctx ends if the lock is lost
	})
	if err != nil {
		log.Fatal(err)
	}
}
