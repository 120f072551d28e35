// Withdrawal pays out money from one account, in as many terminals as you like, and
// compares the ways to pay no more than there is. See README.md.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	_ "github.com/holdfast-go/holdfast/all" // the stores for -store
	"github.com/holdfast-go/holdfast/examples/guarding"
	"github.com/holdfast-go/holdfast/examples/internal/scenario"
	"github.com/holdfast-go/holdfast/examples/internal/terminal"
)

const (
	account    = 1
	accountKey = "account/1"
)

// options are the flags.
type options struct {
	db, store, guard string
	ttl              time.Duration
	amount, open     int64
	play             *scenario.Play
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.db, "db", "postgres://localhost/postgres", "URL of the server: postgres://... or mysql://user:password@host/database")
	flag.StringVar(&o.store, "store", "", "URL of the store of the locks, such as redis://localhost:6379 (default the database)")
	flag.StringVar(&o.guard, "guard", "", "how to guard the account: none, mutex, lock, row, version or update; with -compare several of them (default lock, with -compare all)")
	flag.DurationVar(&o.ttl, "ttl", 3*time.Second, "with -guard lock: how long the lock outlives a dead process")
	flag.Int64Var(&o.amount, "amount", 80, "how much to withdraw")
	flag.Int64Var(&o.open, "open", 0, "open the account anew with this balance, and withdraw nothing")
	o.play = scenario.Flags()
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	if err := o.play.Check(); err != nil {
		return err
	}
	db, err := scenario.Connect(ctx, o.db, o.store, o.ttl, o.play.Goroutines+4)
	if err != nil {
		return err
	}
	defer db.Close()
	b := &bank{Database: db, work: o.play.Pause}
	if o.open > 0 {
		return b.open(ctx, o.open)
	}
	names, err := scenario.Choose(o.play, o.guard, b.guards(), reasons)
	switch {
	case err != nil:
		return err
	case o.play.Worker():
		return b.play(ctx, o.play, names[0])
	case o.play.Compare:
		return b.compare(ctx, o.play, names)
	}
	b.work = func(ctx context.Context) error {
		return terminal.Confirm(ctx, fmt.Sprintf("There is enough for %d.", o.amount))
	}
	return b.ask(ctx, b.guards()[names[0]], o.amount)
}

// ask withdraws for the person at this terminal.
func (b *bank) ask(ctx context.Context, withdraw withdraw, amount int64) error {
	err := withdraw(ctx, amount)
	if errors.Is(err, guarding.ErrFunds) {
		fmt.Println("There is not enough in the account.")
		return nil
	}
	if err != nil {
		return err
	}
	balance, err := b.balance(ctx)
	if err == nil {
		fmt.Printf("Paid out %d. The balance is %d.\n", amount, balance)
	}
	return err
}

// play withdraws 1, again and again.
func (b *bank) play(ctx context.Context, play *scenario.Play, guard string) error {
	withdraw := b.guards()[guard]
	return play.Send(ctx, func(ctx context.Context, _, _ int) error { return withdraw(ctx, 1) },
		func(err error) bool { return errors.Is(err, guarding.ErrFunds) }, &b.retries)
}

// compare has three quarters of the money that is asked for. Paid too much is
// the money that was paid out and is not missing from the balance.
func (b *bank) compare(ctx context.Context, play *scenario.Play, guards []string) error {
	opening := int64(max(1, play.All()*3/4))
	return play.Table(ctx, b.Database, guards, "paid too much",
		func(ctx context.Context) error { return b.open(ctx, opening) },
		func(ctx context.Context, _ string, r scenario.Result) (int, error) {
			left, err := b.balance(ctx)
			return r.Done - int(opening-left), err
		})
}

func (b *bank) balance(ctx context.Context) (balance int64, err error) {
	err = b.Row(ctx, b, `SELECT balance FROM accounts WHERE id = ?`, account).Scan(&balance)
	return balance, err
}

func (b *bank) open(ctx context.Context, balance int64) error {
	if err := b.Create(ctx, schema); err != nil {
		return err
	}
	return b.Tx(ctx, func(tx *sql.Tx) error {
		for _, statement := range []string{
			`DELETE FROM accounts`,
			`DELETE FROM holdfast_fences`, // another store may begin with smaller tokens
		} {
			if _, err := b.Exec(ctx, tx, statement); err != nil {
				return err
			}
		}
		_, err := b.Exec(ctx, tx, `INSERT INTO accounts (id, balance) VALUES (?, ?)`, account, balance)
		return err
	})
}
