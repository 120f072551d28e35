// Registration registers a phone number, in as many terminals as you like, and compares
// the ways to register it once only. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/holdfast-go/holdfast/examples/guarding"
	"github.com/holdfast-go/holdfast/examples/internal/scenario"
	"github.com/holdfast-go/holdfast/examples/internal/terminal"
)

func main() {
	log.SetFlags(0)
	url := flag.String("db", "postgres://localhost/postgres", "URL of the server: postgres://... or mysql://user:password@host/database")
	guard := flag.String("guard", "", "how to guard the phone number: none, mutex, lock, unique or upsert; with -compare several of them (default lock, with -compare all)")
	phone := flag.String("phone", "+49 30 901820", "the phone number")
	clear := flag.Bool("clear", false, "forget all registrations, and register nothing")
	play := scenario.Flags()
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *guard, *phone, *clear, play); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, guard, phone string, clear bool, play *scenario.Play) error {
	if err := play.Check(); err != nil {
		return err
	}
	db, err := scenario.Connect(ctx, url, "", 0, play.Goroutines+4)
	if err != nil {
		return err
	}
	defer db.Close()
	s := &site{Database: db, work: play.Pause}
	if clear {
		return s.forget(ctx)
	}
	names, err := scenario.Choose(play, guard, s.guards(), reasons)
	switch {
	case err != nil:
		return err
	case play.Worker():
		return s.play(ctx, play, names[0])
	case play.Compare:
		return play.Table(ctx, db, names, "registered twice", s.forget, s.twice)
	}
	s.work = func(ctx context.Context) error { return terminal.Confirm(ctx, phone+" is free.") }
	return s.ask(ctx, s.guards()[names[0]], phone)
}

// ask registers a phone number for the person at this terminal.
func (s *site) ask(ctx context.Context, register register, phone string) error {
	user := fmt.Sprintf("user %d", os.Getpid())
	err := register(ctx, phone, user)
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

// play registers one phone number after the other, each in every goroutine.
func (s *site) play(ctx context.Context, play *scenario.Play, guard string) error {
	register := s.guards()[guard]
	return play.Send(ctx, func(ctx context.Context, goroutine, n int) error {
		return register(ctx, fmt.Sprintf("+49 30 %06d", n), fmt.Sprintf("user %d/%d", os.Getpid(), goroutine))
	}, func(err error) bool {
		var taken *guarding.TakenError
		return errors.As(err, &taken)
	}, &s.retries)
}

// twice counts the registrations of phone numbers that had an owner.
func (s *site) twice(ctx context.Context, guard string, r scenario.Result) (n int, err error) {
	var rows, phones int
	err = s.Row(ctx, s, `SELECT count(*), count(DISTINCT phone) FROM
		(SELECT phone FROM registrations UNION ALL SELECT phone FROM unique_registrations) r`).Scan(&rows, &phones)
	if err == nil && rows != r.Done {
		err = fmt.Errorf("%s: %d were told that they have a phone number, and %d rows are there", guard, r.Done, rows)
	}
	return rows - phones, err
}

func (s *site) forget(ctx context.Context) error {
	if err := s.Create(ctx, schema...); err != nil {
		return err
	}
	_, err := s.Exec(ctx, s, `DELETE FROM registrations`)
	_, failed := s.Exec(ctx, s, `DELETE FROM unique_registrations`)
	return errors.Join(err, failed)
}
