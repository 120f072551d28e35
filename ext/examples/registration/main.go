// Registration registers a phone number, in as many terminals as you like, and shows
// how to lock what is not there yet. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"

	"github.com/holdfast-go/holdfast/ext/examples/guarding"
	"github.com/holdfast-go/holdfast/ext/examples/internal/terminal"
)

func main() {
	log.SetFlags(0)
	url := flag.String("db", "postgres://localhost/postgres", "URL of the Postgres server")
	guard := flag.String("guard", "lock", "how to guard the phone number: none, mutex or lock")
	phone := flag.String("phone", "+49 30 901820", "the phone number")
	clear := flag.Bool("clear", false, "forget all registrations, and register nothing")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *guard, *phone, *clear); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, guard, phone string, clear bool) error {
	site, err := guarding.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer site.Close()
	if clear {
		return forget(ctx, site)
	}
	site.Work = func(ctx context.Context) error { return terminal.Confirm(ctx, phone+" is free.") }
	register, ok := guards(site)[guard]
	if !ok {
		return fmt.Errorf("-guard %s is none of none, mutex and lock", guard)
	}
	user := fmt.Sprintf("user %d", os.Getpid())
	err = register(ctx, phone, user)
	var taken *guarding.TakenError
	if errors.As(err, &taken) {
		fmt.Printf("Sorry: %v.\n", taken)
		return nil
	}
	if err == nil {
		fmt.Printf("Registered for %s.\n", user)
	}
	return err
}

// guards are ways to register.
func guards(site *guarding.PGX) map[string]func(ctx context.Context, phone, owner string) error {
	var mu sync.Mutex // knows nothing of other processes
	return map[string]func(ctx context.Context, phone, owner string) error{
		"none": site.RegisterUnguarded,
		"mutex": func(ctx context.Context, phone, owner string) error {
			mu.Lock()
			defer mu.Unlock()
			return site.RegisterUnguarded(ctx, phone, owner)
		},
		"lock": site.Register,
	}
}

func forget(ctx context.Context, site *guarding.PGX) error {
	if err := site.Create(ctx); err != nil {
		return err
	}
	_, err := site.Pool.Exec(ctx, `DELETE FROM registrations`)
	return err
}
