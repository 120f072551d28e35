package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

func Example() {
	ctx := context.Background()
	locks, err := holdfast.Open(ctx, "mem://", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
		fmt.Println("alone")
		return nil // ctx ends if the lock is lost
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: alone
}

func ExampleLocker_TryLock() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), &holdfast.Options{Owner: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	submit := func(token string) error {
		lock, err := locks.TryLock(ctx, "form/"+token, holdfast.Note("order"))
		if errors.Is(err, holdfast.ErrHeld) {
			var held *holdfast.HeldError
			errors.As(err, &held)
			return fmt.Errorf("already being submitted by %s: %s", held.Owner, held.Note)
		}
		if err != nil {
			return err
		}
		defer lock.Unlock()
		return charge()
	}

	first, _ := locks.Lock(ctx, "form/7f3a", holdfast.Note("order"))
	fmt.Println(submit("7f3a"))
	_ = first.Unlock()
	fmt.Println(submit("7f3a"))
	// Output:
	// already being submitted by web-1: order
	// <nil>
}

func charge() error { return nil }

func ExampleLocker_Lock() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.Lock(ctx, "report", holdfast.Wait(5*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()

	ctx = lock.Context(ctx) // ends with the lock, or with ctx
	fmt.Println(ctx.Err(), lock.Err())
	// Output: <nil> <nil>
}

func ExampleLocker_LockAll() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	both, err := locks.LockAll(ctx, []string{"account/7", "account/42"})
	if err != nil {
		log.Fatal(err)
	}
	defer both.Unlock()
	for _, l := range both.Locks() {
		fmt.Println(l.Key())
	}
	// Output:
	// account/42
	// account/7
}

func ExampleSlots() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	for range 3 {
		_, err := locks.TryLock(ctx, "exports", holdfast.Slots(2))
		fmt.Println(errors.Is(err, holdfast.ErrHeld))
	}
	// Output:
	// false
	// false
	// true
}

func ExampleMinHold() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	nightly := func() error {
		lock, err := locks.TryLock(ctx, "nightly", holdfast.MinHold(time.Hour))
		if err != nil {
			return err
		}
		defer lock.Unlock()
		return cleanUp()
	}
	fmt.Println(nightly())
	fmt.Println(errors.Is(nightly(), holdfast.ErrHeld)) // another node, a little late
	// Output:
	// <nil>
	// true
}

func cleanUp() error { return nil }

// A resource that remembers the largest token it has seen refuses a holder
// whose lock has gone to somebody else.
func ExampleLock_Fence() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	var stored struct {
		fence uint64
		value string
	}
	write := func(fence uint64, value string) error {
		if fence < stored.fence {
			return errors.New("outdated")
		}
		stored.fence, stored.value = fence, value
		return nil
	}

	slow, _ := locks.Lock(ctx, "k", holdfast.TTL(200*time.Millisecond), holdfast.NoRenew())
	token := slow.Fence() // read before a long pause
	<-slow.Done()         // the pause

	next, err := locks.Lock(ctx, "k")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Unlock()
	fmt.Println(write(next.Fence(), "new"))
	fmt.Println(write(token, "old"))
	fmt.Println(stored.value)
	// Output:
	// <nil>
	// outdated
	// new
}

func ExampleReenter() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	deposit := func(ctx context.Context) error {
		return locks.Do(ctx, "account/42", func(context.Context) error {
			fmt.Println("deposited")
			return nil
		}, holdfast.Reenter())
	}
	err = locks.Do(ctx, "account/42", func(ctx context.Context) error {
		return deposit(ctx) // under the lock that ctx carries
	})
	fmt.Println(err)
	// Output:
	// deposited
	// <nil>
}

// A reader that finds something to do writes without a gap: no one else writes in between.
func ExampleLock_Upgrade() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	stale := true
	refresh := func(ctx context.Context) error {
		read, err := locks.Lock(ctx, "cache", holdfast.Shared())
		if err != nil {
			return err
		}
		defer read.Unlock()
		if !stale {
			return nil
		}
		write, err := read.Upgrade(ctx)
		if err != nil {
			return err // matches ErrDeadlock if another reader upgrades: unlock, and begin again
		}
		stale = false
		return write.Unlock() // the downgrade: read is still held
	}
	fmt.Println(refresh(ctx), stale)
	// Output: <nil> false
}
