package elect_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/elect"
	"github.com/holdfast-go/holdfast/memlock"
)

func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = elect.Run(ctx, locks, "mailer", func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		fmt.Println("leading, with a token:", lock.Fence() > 0)
		stop() // as when the process is told to end
		<-ctx.Done()
		return nil
	}, elect.TTL(5*time.Second), elect.Report(func(err error) { log.Print(err) }))
	fmt.Println(err)
	// Output:
	// leading, with a token: true
	// <nil>
}

// A process whose work is stuck steps down, though it lives.
func ExampleCheck() {
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	var progress atomic.Int64 // when the work was last seen to go on
	err = elect.Run(context.Background(), locks, "mailer", func(ctx context.Context) error {
		for i := 0; i < 3 && ctx.Err() == nil; i++ {
			progress.Store(time.Now().UnixNano())
			sendMail()
		}
		return nil
	}, elect.Check(time.Second, func(context.Context) error {
		if last := progress.Load(); last > 0 && time.Since(time.Unix(0, last)) > time.Minute {
			return errors.New("no mail for a minute")
		}
		return nil
	}))
	fmt.Println(err)
	// Output: <nil>
}

func sendMail() {}

func ExampleObserve() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), &holdfast.Options{Owner: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	_ = elect.Run(ctx, locks, "mailer", func(ctx context.Context) error {
		for leader, err := range elect.Observe(ctx, locks, "mailer", time.Second) {
			if err != nil {
				fmt.Println("who leads is not known:", err)
				continue
			}
			fmt.Printf("%q leads\n", leader.Owner) // "" if nobody does
			break
		}
		return nil
	})
	// Output: "web-1" leads
}
