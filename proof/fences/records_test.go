package fences

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/once/oncetest"
)

// A ledger is records in a database, and a table for effects.
type ledger struct {
	*engine
	records *once.SQL
	locks   *holdfast.Locker
	journal string
}

func (e *engine) ledger() *ledger {
	e.Helper()
	table := strings.ToLower(e.fences.Table[len(e.fences.Table)-len("_12345678"):])
	l := &ledger{e, &once.SQL{DB: e.db, Dialect: e.fences.Dialect, Table: "once" + table}, must.Get(holdfast.New(memlock.New(), nil)), "journal" + table}
	e.Cleanup(func() { l.locks.Close() })
	e.must(l.records.Create(e.Context()))
	e.exec("CREATE TABLE " + l.journal + " (entry bigint NOT NULL)")
	return l
}

func (e *engine) exec(query string) {
	e.Helper()
	_, err := e.db.ExecContext(e.Context(), query)
	e.must(err)
}

// write is an effect: it writes a number down, and that is its result.
func (l *ledger) write(entry int) func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
	return func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d)", l.journal, entry))
		return fmt.Append(nil, "entry ", entry), err
	}
}

// wrote expects that these and no others are written down.
func (l *ledger) wrote(want ...int) {
	l.Helper()
	rows, err := l.db.QueryContext(l.Context(), "SELECT entry FROM "+l.journal+" ORDER BY entry")
	l.must(err)
	defer rows.Close()
	got := []int{}
	for rows.Next() {
		var entry int
		l.must(rows.Scan(&entry))
		got = append(got, entry)
	}
	if l.must(rows.Err()); fmt.Sprint(got) != fmt.Sprint(want) {
		l.Errorf("written down is %v, want %v", got, want)
	}
}

func (l *ledger) effects() once.Runner {
	return once.Runner{Locks: l.locks, Records: l.records, Retention: time.Hour}
}

func (l *ledger) begin(opts ...holdfast.LockOption) *once.Effect {
	l.Helper()
	effect, err := l.effects().Begin(l.Context(), "key", "", opts...)
	for errors.Is(err, holdfast.ErrLost) || errors.Is(err, os.ErrDeadlineExceeded) { // on a slow machine
		effect, err = l.effects().Begin(l.Context(), "key", "", opts...)
	}
	l.must(err)
	return effect
}

func TestRecordsKeepTheContract(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		oncetest.Run(e.T, oncetest.Harness{Open: func(testing.TB) once.Records {
			other := *l.records
			other.DB = e.db
			return &other
		}})
	})
}

func TestEffectAndRecordCommitTogether(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		broken := errors.New("broken")
		_, err := l.effects().DoTx(e.Context(), "key", func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := l.write(1)(ctx, tx)
			return nil, errors.Join(broken, err)
		})
		if !errors.Is(err, broken) {
			e.Errorf("got %v", err)
		}
		l.wrote()
		var all sync.WaitGroup
		for entry := range 16 {
			all.Go(func() {
				// Transactions that only read first must not be in the way.
				result, err := l.effects().DoTx(e.Context(), "key", l.write(7))
				if err != nil || string(result) != "entry 7" {
					e.Errorf("repeat %d: %q, %v", entry, result, err)
				}
			})
		}
		all.Wait()
		l.wrote(7)
	})
}

// A former owner that goes on in its transaction, after another has been at work,
// changes nothing.
func TestFormerOwnerRollsBack(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		former := l.begin(holdfast.NoRenew(), holdfast.TTL(time.Second))
		later := l.begin(holdfast.TTL(time.Minute)) // once the former's time is over
		if e.fences.Dialect != dialect.SQLite {
			// It has looked at the database before the other came.
			tx := e.begin()
			var n int
			e.must(tx.QueryRowContext(e.Context(), "SELECT count(*) FROM "+l.journal).Scan(&n))
			l.finish(later, 8)
			_, err := l.write(7)(e.Context(), tx)
			e.must(err)
			l.outdated(l.records.FinishTx(e.Context(), tx, former, nil))
			e.must(tx.Rollback())
		} else {
			l.finish(later, 8)
		}
		tx := e.begin()
		_, err := l.write(7)(e.Context(), tx)
		e.must(err)
		l.outdated(l.records.FinishTx(e.Context(), tx, former, nil))
		e.must(errors.Join(tx.Rollback(), former.Close()))
		l.wrote(8)
	})
}

// finish writes and finishes in one transaction.
func (l *ledger) finish(effect *once.Effect, entry int) {
	l.Helper()
	tx := l.engine.begin()
	result, err := l.write(entry)(l.Context(), tx)
	l.must(err)
	l.must(l.records.FinishTx(l.Context(), tx, effect, result))
	l.must(l.records.FinishTx(l.Context(), tx, effect, result)) // again is once
	l.must(tx.Commit())
	l.must(effect.Close())
}

func (l *ledger) outdated(err error) {
	l.Helper()
	if !errors.Is(err, fence.ErrOutdated) || !errors.Is(err, holdfast.ErrLost) {
		l.Errorf("FinishTx says %v, want ErrOutdated and ErrLost", err)
	}
}

// An effect that rolls back after Finish was not done.
func TestFinishThatRollsBack(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		effect, tx := l.begin(), e.begin()
		result, err := l.write(1)(e.Context(), tx)
		e.must(err)
		e.must(l.records.FinishTx(e.Context(), tx, effect, result))
		e.must(errors.Join(tx.Rollback(), effect.Close()))
		l.wrote()
		again, err := l.effects().DoTx(e.Context(), "key", l.write(2))
		if err != nil || string(again) != "entry 2" {
			e.Errorf("got %q, %v", again, err)
		}
		l.wrote(2)

		other := *l.records
		if err := other.FinishTx(e.Context(), e.begin(), l.begin(), nil); err == nil || !strings.Contains(err.Error(), "other records") {
			e.Errorf("an effect of other records: %v", err)
		}
	})
}

// A result that is too large rolls back: the effect has not happened, so that it is
// not one whose result could not be remembered.
func TestLargeResultRollsBack(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		_, err := l.effects().DoTx(e.Context(), "key", func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := l.write(1)(ctx, tx)
			return make([]byte, once.MaxResult+1), err
		})
		if !errors.Is(err, once.ErrTooLarge) || errors.Is(err, once.ErrUnrecorded) {
			e.Errorf("got %v, want ErrTooLarge and not ErrUnrecorded", err)
		}
		l.wrote()
		result, err := l.effects().DoTx(e.Context(), "key", l.write(2), holdfast.Wait(0))
		if err != nil || string(result) != "entry 2" {
			e.Errorf("got %q, %v", result, err)
		}
		l.wrote(2)
	})
}

// The connection is cut in the middle of the COMMIT. Do finds out what has become
// of it.
func TestDoWithCutCommit(t *testing.T) {
	each(t, func(e *engine) {
		if e.fences.Dialect == dialect.SQLite {
			return // It has no connection.
		}
		l := e.ledger()
		c := &cutter{engine: e, proxy: servers.StartProxy(e.T, e.addr())}
		far := *l.records
		far.DB = e.open(c.proxy.Addr())
		var wrote []int
		lost, delay, began := 0, 300*time.Millisecond, time.Now()
		for n := 0; n < 3 || lost == 0; n++ {
			if time.Since(began) > patience {
				e.Fatalf("of %d answers none was lost", n)
			}
			wrote = append(wrote, n)
			key := fmt.Sprint("answer ", n)
			done := make(chan error, 1)
			go func() {
				result, err := once.Runner{Locks: l.locks, Records: &far, Retention: time.Hour}.DoTx(e.Context(), key, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
					defer c.proxy.Replies.Delay(delay)
					return l.write(n)(ctx, tx)
				})
				if err == nil && string(result) != fmt.Sprint("entry ", n) {
					err = fmt.Errorf("result %q", result)
				}
				done <- err
			}()
			before := c.proxy.Replies.Dropped()
			servers.Until(c, "the server to commit", func() bool {
				r, err := l.records.Load(e.Context(), key)
				return err == nil && r.State == once.Done
			})
			c.proxy.Replies.Drop(true)
			c.proxy.Replies.Delay(0)
			servers.Until(c, "the answer", func() bool { return c.proxy.Replies.Dropped() > before || len(done) > 0 })
			c.proxy.Replies.Drop(false)
			if c.proxy.Replies.Dropped() > before {
				lost++
			} else {
				delay = min(2*delay, 2*time.Second) // So slow a machine had sent it already.
			}
			e.must(<-done)
		}
		l.wrote(wrote...)
	})
}

// The table has no more rows than live, and a few.
func TestRecordsAreSwept(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		count := func() (n int) {
			e.Helper()
			e.must(e.db.QueryRowContext(e.Context(), "SELECT count(*) FROM "+l.records.Table).Scan(&n))
			return n
		}
		begin := func(n int, keep time.Duration) {
			_, err := l.records.Begin(e.Context(), fmt.Sprint("key ", keep, n), 1, "", keep)
			e.must(err)
		}
		const many = 100
		for n := range many {
			begin(n, time.Millisecond)
		}
		made := 0
		for late := time.Now().Add(patience); count() > made; made++ {
			if time.Now().After(late) {
				e.Fatalf("%d rows, of %d records that live", count(), made)
			}
			begin(made, time.Hour)
		}
		e.Logf("%d records were swept while %d were made", many, made)
	})
}

func TestRecordsInSchema(t *testing.T) {
	e := start(t, dialect.Postgres)
	_, err := e.db.ExecContext(t.Context(), `CREATE SCHEMA "Records"`)
	e.must(err)
	records := &once.SQL{DB: e.db, Dialect: dialect.Postgres, Table: "Records.Once"}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := records.Create(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	_, err = records.Begin(t.Context(), "key", 1, "", time.Hour)
	e.must(err)
	e.must(records.Finish(t.Context(), "key", 1, nil, time.Hour))

	missing := &once.SQL{DB: e.db, Dialect: dialect.Postgres, Table: "not_there"}
	if _, err := (once.Runner{Locks: &holdfast.Locker{}, Records: missing}).Begin(t.Context(), "key", ""); err == nil || !strings.Contains(err.Error(), "not_there") {
		t.Errorf("%v, want it to name the table", err)
	}
}

// A lock that is lost in the middle ends the transaction, and Do says so.
func TestDoThatLosesItsLock(t *testing.T) {
	each(t, func(e *engine) {
		l := e.ledger()
		for _, late := range []bool{false, true} {
			_, err := l.effects().DoTx(e.Context(), "key", func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
				result, err := l.write(1)(ctx, tx)
				<-ctx.Done()
				if late { // It does not look.
					return result, err
				}
				return nil, errors.Join(err, ctx.Err())
			}, holdfast.NoRenew(), holdfast.TTL(2*time.Second))
			if !errors.Is(err, holdfast.ErrLost) {
				e.Errorf("got %v, want ErrLost", err)
			}
		}
		l.wrote()
		result, err := l.effects().DoTx(e.Context(), "key", l.write(2))
		if err != nil || string(result) != "entry 2" {
			e.Errorf("got %q, %v", result, err)
		}
		l.wrote(2)
	})
}

// FinishRow does in a transaction of pgx what FinishTx does in others.
func TestFinishRow(t *testing.T) {
	e := start(t, dialect.Postgres)
	l := e.ledger()
	pool, err := pgxpool.New(t.Context(), postgres.URL())
	e.must(err)
	t.Cleanup(pool.Close)
	finish := func(effect *once.Effect, entry int) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), fmt.Sprintf("INSERT INTO %s VALUES (%d)", l.journal, entry)); err != nil {
				return err
			}
			for range 2 { // again is once
				err := l.records.FinishRow(effect, nil, func(query string, args ...any) fence.Row {
					return tx.QueryRow(t.Context(), query, args...)
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	former := l.begin(holdfast.NoRenew(), holdfast.TTL(time.Second))
	later := l.begin(holdfast.TTL(time.Minute))
	l.outdated(finish(former, 1))
	e.must(finish(later, 2))
	l.outdated(finish(former, 3))
	e.must(errors.Join(former.Close(), later.Close()))
	l.wrote(2)
	if result, done := l.begin().Result(); !done || len(result) > 0 {
		t.Errorf("got %q, %t", result, done)
	}

	other := start(t, dialect.MySQL).ledger()
	err = other.records.FinishRow(other.begin(), nil, func(string, ...any) fence.Row { panic("a statement was sent") })
	if err == nil || !strings.Contains(err.Error(), "use FinishTx") {
		t.Errorf("%v, want it to name FinishTx", err)
	}
}
