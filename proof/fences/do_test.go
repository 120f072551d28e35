package fences

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/memlock"
)

// A teller writes to an account under a lock, by Do.
type teller struct {
	*engine
	account string // the table, with one row
	locks   *holdfast.Locker
	lock    *holdfast.Lock
	ctx     context.Context // carries lock
}

func eachTeller(t *testing.T, test func(c *teller)) {
	each(t, func(e *engine) {
		c := &teller{engine: e, account: strings.ToLower(e.fences.Table) + "_account", locks: must.Get(holdfast.New(memlock.New(), nil))}
		e.Cleanup(func() { c.locks.Close() })
		c.exec(`CREATE TABLE ` + c.account + ` (id bigint PRIMARY KEY, balance bigint NOT NULL)`)
		c.exec(`INSERT INTO ` + c.account + ` VALUES (1, 100)`)
		var err error
		c.lock, err = c.locks.Lock(e.Context(), "account/1")
		e.must(err)
		c.ctx = c.lock.Context(e.Context())
		test(c)
	})
}

func (c *teller) exec(statement string) {
	c.Helper()
	_, err := c.db.ExecContext(c.Context(), statement)
	c.must(err)
}

// withdraw writes 20; then comes what end does.
func (c *teller) withdraw(ctx context.Context, end func(tx *sql.Tx) error) error {
	return c.fences.Do(ctx, c.db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE `+c.account+` SET balance = 20 WHERE id = 1`); err != nil {
			return err
		}
		return end(tx)
	})
}

func nothing(*sql.Tx) error { return nil }

// wantBalance also wants that no connection stays in a transaction, and that a token
// has been remembered only with a write.
func (c *teller) wantBalance(want, tokens int) {
	c.Helper()
	// database/sql may roll back in the background.
	servers.Until(c.T, "the end of the transaction", func() bool { return c.db.Stats().InUse == 0 })
	var balance, seen int
	c.must(c.db.QueryRowContext(c.Context(), `SELECT balance FROM `+c.account).Scan(&balance))
	c.must(c.db.QueryRowContext(c.Context(), `SELECT count(*) FROM `+c.quoted()).Scan(&seen))
	if balance != want || seen != tokens {
		c.Errorf("the balance is %d, %d tokens are remembered; want %d and %d", balance, seen, want, tokens)
	}
}

func TestDo(t *testing.T) {
	eachTeller(t, func(c *teller) {
		c.must(c.withdraw(c.ctx, nothing))
		c.must(c.withdraw(c.ctx, nothing)) // one holder writes as often as it likes
		c.wantBalance(20, 1)
		if err := c.check(c.Context(), "account/1", c.lock.Fence()-1); !errors.Is(err, fence.ErrOutdated) {
			c.Errorf("after Do a smaller token passes: %v", err)
		}
	})
}

func TestDoRefusesOutdated(t *testing.T) {
	eachTeller(t, func(c *teller) {
		next := c.lock.Fence() + 1
		c.must(c.check(c.Context(), "account/1", next))
		var outdated *fence.OutdatedError
		err := c.withdraw(c.ctx, func(*sql.Tx) error { panic("called in spite of the check") })
		if !errors.As(err, &outdated) || outdated.Highest != next {
			c.Errorf("%v, want the token refused for %d", err, next)
		}
		c.wantBalance(100, 1)
	})
}

func TestDoWithoutLock(t *testing.T) {
	eachTeller(t, func(c *teller) {
		if err := c.withdraw(c.Context(), nothing); err == nil || !strings.Contains(err.Error(), "carries no lock") {
			c.Errorf("%v, want it to say that there is no lock", err)
		}
		kept := context.WithoutCancel(c.ctx) // carries it still
		c.must(c.lock.Unlock())
		if err := c.withdraw(kept, nothing); !errors.Is(err, holdfast.ErrReleased) {
			c.Errorf("after Unlock: %v, want ErrReleased", err)
		}
		c.wantBalance(100, 0)
	})
}

func TestDoRollsBack(t *testing.T) {
	broken := errors.New("broken")
	eachTeller(t, func(c *teller) {
		if err := c.withdraw(c.ctx, func(*sql.Tx) error { return broken }); err != broken {
			c.Errorf("the error of the function came out as %v", err)
		}
		c.wantBalance(100, 0)
		func() {
			defer func() {
				if recover() != broken {
					c.Error("the panic did not come out")
				}
			}()
			_ = c.withdraw(c.ctx, func(*sql.Tx) error { panic(broken) })
		}()
		c.wantBalance(100, 0)
		err := c.withdraw(c.ctx, func(*sql.Tx) error { return c.lock.Unlock() })
		if !errors.Is(err, holdfast.ErrReleased) {
			c.Errorf("the lock ends before the commit: %v, want ErrReleased", err)
		}
		c.wantBalance(100, 0)
	})
}

// A commit fails because of a constraint that is checked then, or of a connection that
// is gone.
func TestDoCommitFails(t *testing.T) {
	eachTeller(t, func(c *teller) {
		spoil := func(tx *sql.Tx) error {
			_, err := tx.ExecContext(c.ctx, `INSERT INTO `+c.account+`_entry VALUES (2)`)
			return err
		}
		switch c.fences.Dialect {
		case dialect.MySQL: // checks all constraints at once
			spoil = func(tx *sql.Tx) error {
				var id int64
				if err := tx.QueryRowContext(c.ctx, `SELECT connection_id()`).Scan(&id); err != nil {
					return err
				}
				_, err := c.db.ExecContext(c.ctx, fmt.Sprintf(`KILL %d`, id))
				return err
			}
		case dialect.SQLServer: // checks all constraints at once, too
			spoil = func(tx *sql.Tx) error {
				var id int64
				if err := tx.QueryRowContext(c.ctx, `SELECT @@SPID`).Scan(&id); err != nil {
					return err
				}
				_, err := c.db.ExecContext(c.ctx, fmt.Sprintf(`KILL %d`, id))
				return err
			}
		case dialect.SQLite:
			c.db.SetMaxOpenConns(1)
			c.exec(`PRAGMA foreign_keys = on`)
			fallthrough
		default:
			c.exec(`CREATE TABLE ` + c.account + `_entry (id bigint REFERENCES ` + c.account + ` (id) DEFERRABLE INITIALLY DEFERRED)`)
		}
		if err := c.withdraw(c.ctx, spoil); err == nil || !strings.Contains(err.Error(), `commit under "account/1"`) {
			c.Errorf("%v, want the error of the commit", err)
		}
		c.wantBalance(100, 0)
	})
}
