package effects

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
	"github.com/holdfast-go/holdfast/once"
)

// A company is the processes of a test, and the place where they meet.
type company struct {
	*testing.T
	at      string
	ttl     time.Duration // how long the others wait for one who has died
	records once.Records
	hands   []*hand
	lines   chan line
}

// A hand is one of the processes.
type hand struct{ *workers.Worker }

// A line is what one of them has said.
type line struct {
	from *hand
	text string
}

// found makes what the place needs.
func found(t *testing.T, at string) *company {
	t.Helper()
	c := &company{T: t, at: at, ttl: longTTL, lines: make(chan line, 10_000)}
	store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
	if creator, ok := store.(driver.Creator); ok {
		servers.Insist(t, func(ctx context.Context) (any, error) { return nil, creator.Create(ctx) })
	}
	c.must(store.Close())
	var err error
	c.records, err = recordsAt(at)
	c.must(err)
	if table, ok := c.records.(*once.SQL); ok {
		t.Cleanup(func() { table.DB.Close() })
		c.must(table.Create(t.Context()))
	}
	return c
}

func (c *company) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// hire starts a process.
func (c *company) hire() *hand {
	c.Helper()
	h := &hand{workers.Start(c, c.at, c.ttl.String())}
	go func() {
		for lines := bufio.NewScanner(h.Out); lines.Scan(); {
			c.lines <- line{h, lines.Text()}
		}
	}()
	c.hands = append(c.hands, h)
	return h
}

// tell gives orders to a process.
func (h *hand) tell(c *company, orders ...string) {
	c.Helper()
	_, err := fmt.Fprintln(h.In, strings.Join(orders, "\n"))
	c.must(err)
}

// next returns the next line that one of them says.
func (c *company) next() line {
	c.Helper()
	select {
	case l := <-c.lines:
		return l
	case <-time.After(patience):
		c.Fatalf("nobody has said anything for %v", patience)
		return line{}
	}
}

// runs expects that one of them runs the effect of a key next.
func (c *company) runs(key string) *hand {
	c.Helper()
	l := c.next()
	if l.text != "running "+key {
		c.Fatalf("got %q, want somebody to run", l.text)
	}
	return l.from
}

// agree expects that the others get the result of one next, and nobody else runs.
func (c *company) agree(key string, of *hand, others int) {
	c.Helper()
	for range others {
		if l, want := c.next(), fmt.Sprint(key, " result of ", of.Process.Pid); l.text != want {
			c.Fatalf("got %q, want %q", l.text, want)
		}
	}
}
