package azurelock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/fence"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "azblob://account/container/locks", nil)
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

// The program has a credential of its own.
func ExampleNew() {
	ctx := context.Background()
	credential, err := azidentity.NewManagedIdentityCredential(nil)
	if err != nil {
		log.Fatal(err)
	}
	container := &azurelock.Container{URL: "https://account.blob.core.windows.net/container", Credential: credential}
	store, err := azurelock.New(container, &azurelock.Options{Prefix: "locks/"})
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

// A blob refuses the write of a holder that has lost its lock.
func ExampleNewBucket() {
	ctx := context.Background()
	var locks *holdfast.Locker // in any store
	var container *azurelock.Container
	bucket, err := azurelock.NewBucket(container, "")
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
