package leases

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// separate makes a database of its own on a server that others use too, with a
// table in it. connections counts those who are connected to it.
func separate(t *testing.T, e *engine, name string) (at string, connections func() int) {
	t.Helper()
	drop := "DROP DATABASE %[1]s"
	if e == postgres {
		drop += " WITH (FORCE)"
	}
	name = unique(t, e.shared, name, drop)
	e.shared.Must("CREATE DATABASE " + name)
	at = within(e.shared.URL(), name)
	count := "SELECT count(*) FROM pg_stat_activity WHERE datname = '" + name + "'"
	if e == mariadb {
		count = "SELECT count(*) FROM information_schema.processlist WHERE db = '" + name + "'"
	}
	db, _ := e.pool(t, e.shared.URL(), 1)
	return create(t, at), func() (n int) {
		succeed(t, db.QueryRowContext(t.Context(), count).Scan(&n))
		return n
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	succeed(t, err)
	return n
}

// waiting counts lines of the view.
func waiting(t *testing.T, db *sql.DB, at string) (n int) {
	t.Helper()
	succeed(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table(at)+"_claims WHERE waiting").Scan(&n))
	return n
}

// Hundreds wait for as many keys. A thousand do as well, but for the race
// detector.
func TestWaitersOfManyKeys(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		waiters, conns := 200, 4
		if testing.Short() {
			waiters = 40
		}
		at, connections := separate(t, e, "crowd")
		a := open(t, at)
		var held []driver.Ask
		refused := make(map[string]chan struct{}) // by key, when its waiter has asked
		for i := range waiters {
			held = append(held, exclusive(fmt.Sprint("key", i), fmt.Sprint("holder", i)))
			held[i].TTL = time.Hour // Nobody renews it.
			refused[held[i].Key] = make(chan struct{}, 1)
		}
		b := locker(t, at, &holdfast.Options{TTL: time.Minute, Trace: &holdfast.Trace{Tried: func(e holdfast.Event) {
			select {
			case refused[e.Key] <- struct{}{}:
			default:
			}
		}}})
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		var lining sync.WaitGroup
		var failed atomic.Int64
		inParallel(t, conns, waiters, func(i int) error {
			if _, err := a.Acquire(ctx, held[i]); err != nil {
				return err
			}
			lining.Go(func() {
				l, err := servers.Patient(ctx, b.Lock, held[i].Key)
				if err == nil {
					err = unlockAtOnce(l)
				}
				if err != nil && failed.Add(1) < 5 {
					t.Errorf("%s: %v", held[i].Key, err)
				}
			})
			select {
			case <-refused[held[i].Key]:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		// Each has one that listens or holds a bell, and more may wait for bells; the table
		// was made over a separate connection. The server knows a broken connection for a
		// while.
		servers.Until(t, "two processes with many waiters to have few connections", func() bool { return connections() <= 2*(conns+1+e.ears)+1 })
		inParallel(t, conns, waiters, func(i int) error { return a.Release(ctx, asks.Releases(held[i:i+1]...))[0] })
		lining.Wait()
	})
}

// inParallel does n things, some at a time.
func inParallel(t *testing.T, lanes, n int, do func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	var next atomic.Int64
	for range lanes {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					t.Errorf("no. %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A thousand wait for one key, in four processes with one connection each, and
// nobody waits for a connection in vain.
func TestWaitersOfOneKey(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		waiters, processes := 1000, 4
		if testing.Short() {
			waiters = 100
		}
		at, connections := separate(t, e, "queue")
		db, _ := e.pool(t, at, 1)
		at = with(at, "conns", "1")
		held := lock(t, locker(t, at, nil), "key")
		ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
		defer cancel()
		var all []*holdfast.Locker
		for range processes {
			all = append(all, locker(t, at, nil))
		}
		var lining sync.WaitGroup
		var begun, holding, failed atomic.Int64
		for i := range waiters {
			lining.Go(func() {
				begun.Add(1)
				l, err := servers.Patient(ctx, all[i%processes].Lock, "key")
				if err == nil {
					if holding.Add(1) > 1 {
						t.Error("two hold the key")
					}
					holding.Add(-1)
					err = unlockAtOnce(l)
				}
				if err != nil && failed.Add(1) < 5 {
					t.Error(err)
				}
			})
		}
		servers.Until(t, "all to wait", func() bool { return begun.Load() == int64(waiters) && waiting(t, db, at) == processes })
		// One each, and one that listens, or one that holds a bell and one that waits for a
		// bell; two more made the table, and count.
		each := 2 + min(e.ears, 1)
		servers.Until(t, "processes with many waiters to have few connections", func() bool { return connections() <= each*(processes+1)+2 })
		succeed(t, unlock(held))
		lining.Wait()
	})
}

// A pool of one connection serves its owner while another waits for a lock
// through it.
func TestWaitersLeaveThePoolAlone(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		held := lock(t, locker(t, at, nil), "key")
		db, _ := e.pool(t, at, 1)
		user, s := e.pool(t, at, 1)
		locks := lockerOf(t, s, nil)
		got := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			l, err := servers.Patient(ctx, locks.Lock, "key")
			if err == nil {
				err = unlock(l)
			}
			got <- err
		}()
		servers.Until(t, "the one who waits", func() bool { return waiting(t, db, at) == 1 })
		for range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			tx, err := user.BeginTx(ctx, nil)
			succeed(t, err)
			var one int
			succeed(t, tx.QueryRowContext(ctx, "SELECT 1").Scan(&one))
			succeed(t, tx.Commit())
			cancel()
		}
		// Its only connection is in use while the lock becomes free.
		tx, err := user.BeginTx(t.Context(), nil)
		succeed(t, err)
		succeed(t, unlock(held))
		select {
		case err := <-got:
			t.Log("it needed no connection: ", err)
			got = nil
		case <-time.After(10 * time.Millisecond):
		}
		succeed(t, tx.Commit())
		if got != nil {
			succeed(t, <-got)
		}
	})
}
