//go:build unix

package effects

import (
	"crypto/rand"
	"fmt"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/dialect"
)

// The process that runs the effect is stopped for longer than its lock lasts.
// Another takes over. When the first goes on, it comes to its end and is refused.
func TestPausedOwner(t *testing.T) {
	each(t, func(c *company) {
		key := "paused " + rand.Text()
		former, later := c.takeOver("do ", key)
		later.tell(c, "finish")
		c.agree(key, later, 1)
		c.must(former.Process.Signal(syscall.SIGCONT))
		former.tell(c, "finish")
		c.outdated(key, former)
		former.tell(c, "do "+key)
		c.agree(key, later, 1)
	})
}

// As above, and the later owner still runs when the former is back.
func TestPausedOwnerIsFirst(t *testing.T) {
	each(t, func(c *company) {
		key := "first " + rand.Text()
		former, later := c.takeOver("do ", key)
		c.must(former.Process.Signal(syscall.SIGCONT))
		former.tell(c, "finish")
		c.outdated(key, former)
		later.tell(c, "finish")
		c.agree(key, later, 1)
	})
}

// The process is stopped in a transaction. The server undoes the changes of the
// transaction.
func TestPausedInTransaction(t *testing.T) {
	each(t, func(c *company) {
		if records := c.effects(); records == nil || records.Dialect == dialect.SQLite {
			return // no transactions, or one writer at a time
		}
		key := "tx paused " + rand.Text()
		former, later := c.takeOver("tx ", key)
		later.tell(c, "finish")
		c.agree(key, later, 1)
		c.must(former.Process.Signal(syscall.SIGCONT))
		former.tell(c, "finish")
		c.outdated(key, former)
		c.happened(key, 1)
	})
}

// takeOver returns the owner of an effect, which is stopped, and the next owner.
func (c *company) takeOver(order, key string) (former, later *hand) {
	c.Helper()
	c.hire().tell(c, order+key)
	former = c.runs(key)
	c.hire().tell(c, order+key)
	c.must(former.Process.Signal(syscall.SIGSTOP))
	return former, c.runs(key)
}

func (c *company) outdated(key string, former *hand) {
	c.Helper()
	if l := c.next(); l.from != former || l.text != fmt.Sprint(key, " error outdated") {
		c.Errorf("got %q, want the former owner to be refused", l.text)
	}
}
