package etcdlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/etcdlock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "etcd://h1:2379,h2:2379,h3:2379", nil)
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
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{"h1:2379", "h2:2379", "h3:2379"},
		DialKeepAliveTime: 5 * time.Second, // notices a member that hangs
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	store, err := etcdlock.New(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	lock, err := locks.Lock(ctx, "account/42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("fencing token", lock.Fence())
}
