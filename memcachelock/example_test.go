package memcachelock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memcachelock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "memcached://localhost:11211", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.TryLock(ctx, "cache/front-page")
	if errors.Is(err, holdfast.ErrHeld) {
		return // another process refreshes the cache
	}
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("one process at a time, most of the time")
}

// A server that speaks TLS needs a function that dials.
func ExampleNew() {
	dialer := &tls.Dialer{}
	store, err := memcachelock.New([]string{"cache.example.com:11211"}, &memcachelock.Options{Dial: dialer.DialContext})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.Lock(context.Background(), "cache/front-page")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("fencing token", lock.Fence())
}
