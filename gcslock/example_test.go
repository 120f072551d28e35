package gcslock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"golang.org/x/oauth2/google"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/gcslock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "gs://bucket/locks", nil)
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

// The client has credentials of its own.
func ExampleNew() {
	ctx := context.Background()
	client, err := google.DefaultClient(ctx, gcslock.Scope)
	if err != nil {
		log.Fatal(err)
	}
	store, err := gcslock.New(client, "bucket", &gcslock.Options{Prefix: "locks/"})
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

// An object in a bucket refuses the write of a holder that has lost its lock.
func ExampleNewBucket() {
	ctx := context.Background()
	var locks *holdfast.Locker // in any store
	var client *http.Client    // of google.DefaultClient
	bucket, err := gcslock.NewBucket(client, "bucket", nil)
	if err != nil {
		log.Fatal(err)
	}
	state := fence.Object{Bucket: bucket, Name: "state/prod"}

	err = locks.Do(ctx, "state/prod", func(ctx context.Context) error {
		data, err := state.Read(ctx)
		if err != nil {
			return err
		}
		return state.Write(ctx, append(data, "one more line\n"...))
	})
	if errors.Is(err, fence.ErrOutdated) {
		log.Print("a later holder has been here: nothing was written")
	}
}
