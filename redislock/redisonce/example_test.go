package redisonce_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/redisonce"
)

func Example() {
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
	records := redisonce.New(client, nil)
	effects := once.Runner{Locks: locks, Records: records}
	receipt, err := effects.Do(ctx, "order/7f3a", func(ctx context.Context) ([]byte, error) {
		return []byte("charged 100"), ctx.Err() // ctx ends if the lock is lost
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", receipt) // the same for every request with this key
}
