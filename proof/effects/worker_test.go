package effects

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/once"
)

// A longTTL is long enough for a slow machine to keep its locks. A test that puts up with
// locks that are lost takes a shortTTL, which costs less time.
const longTTL, shortTTL = 10 * time.Second, 5 * time.Second

// A worker is this process.
type worker struct {
	locks   *holdfast.Locker
	records once.Records
	finish  chan struct{}
}

// workUntilTold works at the place of locks and records. It reads words from its input:
//
//	do KEY    run the effect of the key, once, or get its result
//	tx KEY    the same, with the effect in a transaction
//	finish    let the effects that run come to their end
//
// and writes "running KEY" when it runs an effect, and then "KEY result RESULT" or
// "KEY error WHICH".
func workUntilTold(at, ttl string) (err error) {
	ctx, opts := context.Background(), &holdfast.Options{}
	if opts.TTL, err = time.ParseDuration(ttl); err != nil {
		return err
	}
	w := &worker{finish: make(chan struct{})}
	if w.records, err = recordsAt(at); err != nil {
		return err
	}
	w.locks, err = holdfast.Open(ctx, at, opts)
	for errors.Is(err, os.ErrDeadlineExceeded) { // on a slow machine
		w.locks, err = holdfast.Open(ctx, at, opts)
	}
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		order, key, _ := strings.Cut(words.Text(), " ")
		switch order {
		case "finish":
			close(w.finish)
		case "do":
			all.Go(func() {
				report(key, func() ([]byte, error) {
					return once.Runner{Locks: w.locks, Records: w.records, Retention: time.Hour}.Do(ctx, key, w.effect(key))
				})
			})
		case "tx":
			all.Go(func() { report(key, func() ([]byte, error) { return w.transact(ctx, key) }) })
		default:
			return fmt.Errorf("unknown order %q", words.Text())
		}
	}
	all.Wait()
	return w.locks.Close()
}

// effect takes until the process is told to finish, whatever becomes of the lock.
func (w *worker) effect(key string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		fmt.Println("running", key)
		<-w.finish
		return fmt.Append(nil, "of ", os.Getpid()), nil
	}
}

// transact has an effect in the database. It looks after its own transaction, which
// ends with no lock, as that of a program that was paused between two statements.
func (w *worker) transact(ctx context.Context, key string) ([]byte, error) {
	records := w.records.(*once.SQL)
	e, err := once.Runner{Locks: w.locks, Records: records}.Begin(ctx, key, "")
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if result, done := e.Result(); done {
		return result, nil
	}
	tx, err := records.DB.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES ('"+key+"')"); err != nil {
		return nil, err
	}
	result, err := w.effect(key)(ctx)
	if err != nil {
		return nil, err
	}
	if err := records.FinishTx(ctx, tx, e, result); err != nil {
		return nil, err
	}
	return result, tx.Commit()
}

// report asks until it is answered, since a slow machine is not wrong, and writes
// down what. A lock that another process hands over may last for a second only, so Begin may lose
// the lock.
func report(key string, ask func() ([]byte, error)) {
	result, err := ask()
	for (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, holdfast.ErrLost)) &&
		!errors.Is(err, once.ErrUnrecorded) && !errors.Is(err, fence.ErrOutdated) {
		result, err = ask()
	}
	switch {
	case errors.Is(err, fence.ErrOutdated) && errors.Is(err, holdfast.ErrLost):
		fmt.Println(key, "error outdated")
	case err != nil:
		fmt.Println(key, "error", strings.ReplaceAll(err.Error(), "\n", "; "))
	default:
		fmt.Println(key, "result", string(result))
	}
}
