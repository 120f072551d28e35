package fences

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

// A cutter writes through a proxy, and looks beside it.
type cutter struct {
	*engine
	far     *sql.DB
	proxy   *servers.Proxy
	journal string
}

// write begins a transaction that checks a token and writes it down.
func (c *cutter) write(token uint64) *sql.Tx {
	c.Helper()
	tx, err := c.far.BeginTx(c.Context(), nil)
	c.must(err)
	c.must(c.fences.Check(c.Context(), tx, "key", token))
	_, err = tx.ExecContext(c.Context(), fmt.Sprintf("INSERT INTO %s VALUES (%d)", c.journal, token))
	c.must(err)
	return tx
}

// outcome is what others see of the write and of its token.
func (c *cutter) outcome(token uint64) (written, remembered bool) {
	c.Helper()
	c.must(c.db.QueryRowContext(c.Context(), fmt.Sprintf("SELECT CASE WHEN count(*) > 0 THEN 1 ELSE 0 END FROM %s WHERE token = %d", c.journal, token)).Scan(&written))
	c.must(c.db.QueryRowContext(c.Context(), fmt.Sprintf("SELECT CASE WHEN count(*) > 0 THEN 1 ELSE 0 END FROM %s WHERE fence = %d", c.quoted(), token)).Scan(&remembered))
	return written, remembered
}

// loseRequest commits what never reaches the server.
func (c *cutter) loseRequest(tx *sql.Tx) error {
	before := c.proxy.Requests.Dropped()
	c.proxy.Requests.Drop(true)
	done := make(chan error, 1)
	go func() { done <- tx.Commit() }()
	servers.Until(c, "the request to be lost", func() bool { return c.proxy.Requests.Dropped() > before })
	c.proxy.Requests.Drop(false)
	return <-done
}

// loseAnswer commits what the server does and cannot tell of.
func (c *cutter) loseAnswer(tx *sql.Tx, seen func() bool) error {
	before := c.proxy.Replies.Dropped()
	c.proxy.Replies.Hold(true)
	done := make(chan error, 1)
	go func() { done <- tx.Commit() }()
	servers.Until(c, "the server to commit", seen)
	c.proxy.Replies.Drop(true)
	servers.Until(c, "the answer to be lost", func() bool { return c.proxy.Replies.Dropped() > before })
	c.proxy.Replies.Hold(false)
	c.proxy.Replies.Drop(false)
	return <-done
}

// The connection is cut in the middle of COMMIT. The writer does not know the outcome. But
// the database has both the write and its token, or neither. A second check of the token,
// and a look, tell which.
func TestCutCommit(t *testing.T) {
	each(t, func(e *engine) {
		if e.fences.Dialect == dialect.SQLite {
			return // It has no connection.
		}
		c := &cutter{engine: e, proxy: servers.StartProxy(e.T, e.addr()), journal: strings.ToLower(e.fences.Table) + "_journal"}
		c.far = c.open(c.proxy.Addr())
		_, err := c.db.ExecContext(c.Context(), "CREATE TABLE "+c.journal+" (token bigint NOT NULL)")
		c.must(err)
		for token := uint64(1); token < 10; token += 3 {
			unheard, done := token+1, token+2
			err := c.loseRequest(c.write(unheard))
			if written, remembered := c.outcome(unheard); err == nil || written || remembered {
				c.Errorf("the request was lost: %v; written: %t, token remembered: %t", err, written, remembered)
			}
			c.must(c.check(c.Context(), "key", token)) // Nobody saw a larger one.

			err = c.loseAnswer(c.write(done), func() bool { written, _ := c.outcome(done); return written })
			if written, remembered := c.outcome(done); err == nil || !written || !remembered {
				c.Errorf("the answer was lost: %v; written: %t, token remembered: %t", err, written, remembered)
			}
			c.must(c.check(c.Context(), "key", done))
			if err := c.check(c.Context(), "key", unheard); !errors.Is(err, fence.ErrOutdated) {
				c.Errorf("%d after %d: %v, want ErrOutdated", unheard, done, err)
			}
		}
	})
}
