package dynamodblock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamodblock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "dynamodb://locks?region=eu-west-1", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.TryLock(ctx, "state/prod")
	if errors.Is(err, holdfast.ErrHeld) {
		fmt.Println("another process deploys")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("fencing token", lock.Fence())
}

// The client has settings of its own.
func ExampleNew() {
	ctx := context.Background()
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	store, err := dynamodblock.New(dynamodb.NewFromConfig(settings), "locks", &dynamodblock.Options{Prefix: "deploys"})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.Lock(ctx, "state/prod")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("fencing token", lock.Fence())
}
