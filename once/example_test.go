package once_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// pay stands for a service that others run. It knows the payments that it has
// made by their keys.
func pay(ctx context.Context, key string, amount int) (receipt []byte, err error) {
	fmt.Println("paid", amount)
	return fmt.Appendf(nil, "receipt for %s", key), ctx.Err()
}

func ExampleRunner_Do() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	effects := once.Runner{Locks: locks, Records: &once.Memory{}}

	checkout := func(order string) ([]byte, error) {
		key := "order/" + order
		return effects.Do(ctx, key, func(ctx context.Context) ([]byte, error) {
			return pay(ctx, key, 100) // ctx ends if the lock is lost
		})
	}
	for range 3 { // a double click, and a page that is loaded again
		receipt, err := checkout("7f3a")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", receipt)
	}
	// Output:
	// paid 100
	// receipt for order/7f3a
	// receipt for order/7f3a
	// receipt for order/7f3a
}

func ExampleRunner_Do_refuse() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	effects := once.Runner{Locks: locks, Records: &once.Memory{}}

	var second error
	_, err = effects.Do(ctx, "order/7f3a", func(context.Context) ([]byte, error) {
		_, second = effects.Do(ctx, "order/7f3a", nil, holdfast.Wait(0))
		return nil, nil
	})
	fmt.Println(err, errors.Is(second, holdfast.ErrHeld))
	// Output: <nil> true
}

func ExampleRunner_Begin() {
	ctx := context.Background()
	locks, err := holdfast.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	effects := once.Runner{Locks: locks, Records: &once.Memory{}}

	submit := func(key, form string) ([]byte, error) {
		print := sha256.Sum256([]byte(form))
		effect, err := effects.Begin(ctx, key, string(print[:]))
		if err != nil {
			return nil, err
		}
		defer effect.Close() // gives the key back, if it was not finished
		if result, done := effect.Result(); done {
			return result, nil
		}
		result, err := pay(effect.Context(ctx), key, 100)
		if err != nil {
			return nil, err // nothing is remembered: the next may try
		}
		return result, effect.Finish(ctx, result)
	}
	receipt, err := submit("7f3a", "a book")
	fmt.Printf("%s, %v\n", receipt, err)
	receipt, err = submit("7f3a", "a book")
	fmt.Printf("%s, %v\n", receipt, err)
	_, err = submit("7f3a", "another book")
	fmt.Println(errors.Is(err, once.ErrMismatch))
	// Output:
	// paid 100
	// receipt for 7f3a, <nil>
	// receipt for 7f3a, <nil>
	// true
}
