package effects

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/once"
)

// The process that runs the effect is killed in the middle of it. One other takes
// over, and everybody gets its result.
func TestKilledOwner(t *testing.T) {
	each(t, func(c *company) {
		const processes = 4
		key := "killed " + rand.Text()
		for range processes {
			c.hire().tell(c, "do "+key)
		}
		first := c.runs(key)
		c.must(first.Process.Kill())
		second := c.runs(key)
		if second == first {
			c.Fatal("the dead runs again")
		}
		second.tell(c, "finish", "do "+key)
		c.agree(key, second, processes)
		for _, h := range c.hands {
			if h != first {
				h.tell(c, "do "+key)
				c.agree(key, second, 1)
			}
		}
		c.hire().tell(c, "do "+key)
		c.agree(key, second, 1)
	})
}

// Processes are killed at random while they do many things, and nobody ever gets
// another result than somebody else.
func TestManyKilled(t *testing.T) {
	each(t, func(c *company) {
		processes, kills, keys := 4, 5, 40
		if testing.Short() {
			processes, kills, keys = 3, 2, 16
		}
		c.ttl = shortTTL
		prefix := "many " + rand.Text() + " "
		var orders []string
		for n := range keys {
			orders = append(orders, fmt.Sprint("do ", prefix, n))
		}
		start := func() { c.hire().tell(c, append([]string{"finish"}, orders...)...) }
		for range processes {
			start()
		}
		results := map[string]string{}
		note := func() (from *hand, answer bool) {
			l := c.next()
			key, result, ok := strings.Cut(l.text, " result ")
			switch was, known := results[key]; {
			case strings.Contains(l.text, " error "):
				c.Log(l.text) // A slow machine has lost a lock.
				return l.from, true
			case !ok: // It runs.
			case known && was != result:
				c.Errorf("%s: %q and %q", key, was, result)
			default:
				results[key] = result
			}
			return l.from, ok
		}
		for n := range kills {
			for range keys / 2 {
				note()
			}
			c.must(c.hands[n].Process.Kill())
			start()
		}
		last := c.hands[len(c.hands)-1]
		for answers := 0; answers < keys || len(results) < keys; {
			if from, answer := note(); from == last && answer {
				answers++
			}
		}
	})
}

// The process is killed in a transaction that has changed what the effect is to
// change. It happens once.
func TestKilledInTransaction(t *testing.T) {
	each(t, func(c *company) {
		if c.effects() == nil {
			return // no transactions there
		}
		key := "tx killed " + rand.Text()
		c.hire().tell(c, "tx "+key)
		first := c.runs(key)
		c.hire().tell(c, "tx "+key)
		c.must(first.Process.Kill())
		second := c.runs(key)
		second.tell(c, "finish")
		c.agree(key, second, 1)
		c.happened(key, 1)
	})
}

// effects makes the table of effects, if there are transactions.
func (c *company) effects() *once.SQL {
	c.Helper()
	records, ok := c.records.(*once.SQL)
	if !ok {
		return nil
	}
	statement := "CREATE TABLE IF NOT EXISTS effects (what varchar(200) NOT NULL)"
	if records.Dialect == dialect.SQLServer {
		statement = "CREATE TABLE effects (what varchar(200) NOT NULL)" // in a database of the test
	}
	_, err := records.DB.ExecContext(c.Context(), statement)
	if err != nil && !strings.Contains(err.Error(), "exist") && !strings.Contains(err.Error(), "duplicate") {
		c.Fatal(err)
	}
	return records
}

// happened expects that the effect of a key has happened so often.
func (c *company) happened(key string, want int) {
	c.Helper()
	var got int
	records := c.records.(*once.SQL)
	c.must(records.DB.QueryRowContext(c.Context(), "SELECT count(*) FROM effects WHERE what = '"+key+"'").Scan(&got))
	if got != want {
		c.Errorf("it has happened %d times, want %d", got, want)
	}
}
