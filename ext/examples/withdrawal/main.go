// Withdrawal pays out money from one account, in as many terminals as you like, and
// shows what a lock is for. See README.md.
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

const account = 1

func main() {
	log.SetFlags(0)
	url := flag.String("db", "postgres://localhost/postgres", "URL of the Postgres server")
	guard := flag.String("guard", "lock", "how to guard the account: none, mutex or lock")
	amount := flag.Int64("amount", 80, "how much to withdraw")
	open := flag.Int64("open", 0, "open the account anew with this balance, and withdraw nothing")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *guard, *amount, *open); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, guard string, amount, open int64) error {
	bank, err := guarding.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer bank.Close()
	if open > 0 {
		return openAccount(ctx, bank, open)
	}
	bank.Work = func(ctx context.Context) error {
		return terminal.Confirm(ctx, fmt.Sprintf("There is enough for %d.", amount))
	}
	withdraw, ok := guards(bank)[guard]
	if !ok {
		return fmt.Errorf("-guard %s is none of none, mutex and lock", guard)
	}
	err = withdraw(ctx, account, amount)
	if errors.Is(err, guarding.ErrFunds) {
		fmt.Println("There is not enough in the account.")
		return nil
	}
	if err != nil {
		return err
	}
	var balance int64
	if err := bank.Pool.QueryRow(ctx, `SELECT balance FROM accounts WHERE id = $1`, account).Scan(&balance); err != nil {
		return err
	}
	fmt.Printf("Paid out %d. The balance is %d.\n", amount, balance)
	return nil
}

// guards are ways to withdraw.
func guards(bank *guarding.PGX) map[string]func(ctx context.Context, id, amount int64) error {
	var mu sync.Mutex // knows nothing of other processes
	return map[string]func(ctx context.Context, id, amount int64) error{
		"none": bank.Unguarded,
		"mutex": func(ctx context.Context, id, amount int64) error {
			mu.Lock()
			defer mu.Unlock()
			return bank.Unguarded(ctx, id, amount)
		},
		"lock": bank.Lease,
	}
}

func openAccount(ctx context.Context, bank *guarding.PGX, balance int64) error {
	if err := bank.Create(ctx); err != nil {
		return err
	}
	_, err := bank.Pool.Exec(ctx, `INSERT INTO accounts (id, balance) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET balance = excluded.balance`, account, balance)
	return err
}
