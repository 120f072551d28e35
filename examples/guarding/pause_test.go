package guarding

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// pausedTTL is how long the test takes, and long enough for a slow machine to read.
const pausedTTL = 5 * time.Second

// A process holds the lock on an account and is stopped for longer than its TTL.
// Another withdraws meanwhile. The first one goes on: it has been told, and what
// it writes all the same is refused.
func TestPausedHolderIsRefused(t *testing.T) {
	id := account(t, 100)
	first := worker(t, "pause", server.URL(), fmt.Sprint(id))
	input, err := first.StdinPipe()
	succeed(t, err)
	output, err := first.StdoutPipe()
	succeed(t, err)
	succeed(t, first.Start())
	lines := bufio.NewScanner(output)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the worker says %q, want %q", lines.Text(), want)
		}
	}
	expect("balance 100")
	succeed(t, stop(first.Process))

	p, err := start(t.Context(), server.URL(), 2, nil)
	succeed(t, err)
	defer p.end()
	err = p.sql.Lease(t.Context(), id, 30) // waits until the lease of the first has run out
	for isLate(err, "lock") {
		err = p.sql.Lease(t.Context(), id, 30)
	}
	if !isLate(err, "unlock") {
		succeed(t, err)
	}

	succeed(t, carryOn(first.Process))
	_, err = io.WriteString(input, "write\n")
	succeed(t, err)
	expect("lost: true, outdated: true")
	succeed(t, first.Wait())
	if left := balanceOf(id); left != "70" {
		t.Errorf("the balance is %q, want 70", left)
	}
}

// writeAfterPause is the worker: it reads the balance, waits for a line, and
// writes as one would who had not looked whether the lock is still held.
func writeAfterPause(args []string) error {
	ctx, id := context.Background(), int64(number(args[1]))
	p, err := start(ctx, args[0], 2, &holdfast.Options{TTL: pausedTTL})
	if err != nil {
		return err
	}
	defer p.end()
	var lock *holdfast.Lock
	var token uint64
	for token == 0 { // unless the machine was paused
		if lock, err = servers.Patient(ctx, p.locks.Lock, accountKey(id)); err != nil {
			return err
		}
		token = lock.Fence() // as long as it is not lost
	}
	var balance int64
	if err := p.sql.DB.QueryRowContext(ctx, `SELECT balance FROM accounts WHERE id = $1`, id).Scan(&balance); err != nil {
		return err
	}
	fmt.Println("balance", balance)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	lost := errors.Is(lock.Err(), holdfast.ErrLost)
	tx, err := p.sql.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	err = fences.Check(ctx, tx, lock.Key(), token)
	if err == nil {
		_, err = tx.ExecContext(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-50, id)
	}
	if err == nil {
		err = tx.Commit()
	}
	fmt.Printf("lost: %v, outdated: %v\n", lost, errors.Is(err, fence.ErrOutdated))
	return nil
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
