package pglock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A counter counts the statements that take or free one key, and those for several keys.
type counter struct{ single, takes, frees atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	switch several := strings.HasPrefix(data.SQL, "WITH asked"); {
	case several && strings.Contains(data.SQL, "INSERT"):
		c.takes.Add(1)
	case several:
		c.frees.Add(1)
	case strings.HasSuffix(data.SQL, "RETURNING fence"), strings.HasSuffix(data.SQL, "RETURNING name"):
		c.single.Add(1)
	}
	return ctx
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A gathering is a store whose calls gather while others wait for rows that are locked by hand.
type gathering struct {
	*testing.T
	*Store
	table string
}

// lock locks the rows of keys by hand.
func (g *gathering) lock(keys ...string) (unlock func()) {
	conn := must.Get(pgx.Connect(g.Context(), server.URL()))
	tx := must.Get(conn.Begin(g.Context()))
	must.Get(tx.Exec(g.Context(), "SELECT FROM "+g.table+" WHERE name = ANY ($1) FOR UPDATE", keys))
	return func() {
		if err := errors.Join(tx.Commit(g.Context()), conn.Close(g.Context())); err != nil {
			g.Error(err)
		}
	}
}

// gather begins calls for slow keys, which wait for their rows, and then calls for other keys. It
// returns when all calls have ended but the one for the key "locked", whose row is locked for longer.
func (g *gathering) gather(do func(name string), slow []string, others ...string) {
	g.Helper()
	ended := make(chan string)
	call := func(name string) {
		do(name)
		ended <- name
	}
	release, unlock := g.lock(slow...), g.lock("locked")
	for i, name := range slow {
		go call(name)
		servers.Until(g, "the statement waits for the row", func() bool {
			return server.Must("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"+g.table+"%'") == fmt.Sprint(i+1)
		})
	}
	for _, name := range append(others, "locked") {
		go call(name)
	}
	release()
	for range len(slow) + len(others) {
		if name := <-ended; name == "locked" {
			g.Error("a call has passed a lock on its row")
			<-ended
		}
	}
	unlock()
	<-ended
}

// While statements for one key wait for rows that somebody has locked, further calls gather, and share
// the next statement. Each gets what it would get alone, and waits for no row of another. Rounds follow
// until all calls have come in time.
func TestTogether(t *testing.T) {
	t.Parallel()
	counts := &counter{}
	config := must.Get(pgxpool.ParseConfig(server.URL() + "&pool_max_conns=4"))
	config.ConnConfig.Tracer = counts
	pool := servers.Insist(t, func(ctx context.Context) (*pgxpool.Pool, error) { return connect(ctx, config) })
	defer pool.Close()
	g := &gathering{t, nil, "together"}
	g.Store = must.Get(New(pool, &Options{Table: g.table}))
	defer g.Close()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, g.Create(ctx) })
	const floor = uint64(1) << 52 // the highest token of rows that were deleted
	server.Must(fmt.Sprintf("UPDATE %s SET fence = %d WHERE name = ''", g.table, floor))

	// The name of a call is its key, or its key and a number.
	claim := func(name string) driver.Claim {
		key, _, _ := strings.Cut(name, "#")
		return driver.Claim{Key: key, ID: "id of " + name, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
	}
	grants := make(map[string]*driver.Grant)
	acquire := func(name string) {
		*grants[name] = servers.Insist(t, func(ctx context.Context) (driver.Grant, error) {
			return g.Acquire(ctx, driver.Ask{Claim: claim(name), Span: 1})
		})
	}
	release := func(name string) {
		servers.Insist(t, func(ctx context.Context) (any, error) {
			var err error
			if errs := g.Release(ctx, []driver.Release{{Claim: claim(name)}}); errs != nil {
				err = errs[0]
			}
			if lost := errors.Is(err, driver.ErrLost); lost != !grants[name].OK {
				t.Errorf("%s, held %t: %v", name, grants[name].OK, err)
			}
			return nil, nil
		})
	}
	slow := []string{"slow 1", "slow 2", "slow 3"}
	for _, name := range append(slow, "free", "locked", "held#holder") {
		grants[name] = new(driver.Grant)
		acquire(name)
		if name != "held#holder" {
			release(name)
		}
	}
	for round, late := 0, true; late; round++ {
		counts.single.Store(0)
		counts.takes.Store(0)
		counts.frees.Store(0)
		last := grants["free"].Fence
		others := []string{"free", "held", fmt.Sprint("new ", round), fmt.Sprint("two ", round, "#1"), fmt.Sprint("two ", round, "#2")}
		for _, name := range others {
			grants[name] = new(driver.Grant)
		}
		g.gather(acquire, slow, others...)
		first, second := grants[others[3]], grants[others[4]]
		for _, name := range append(slow, others[0], others[2], "locked") {
			if !grants[name].OK {
				t.Errorf("%s was refused", name)
			}
		}
		switch {
		case grants["held"].OK || first.OK == second.OK:
			t.Errorf("one of two claims has to get a new key, and none a key that is held: %+v, %+v, %+v", first, second, grants["held"])
		case grants["free"].Fence <= last || grants[others[2]].Fence <= floor || max(first.Fence, second.Fence) <= floor:
			t.Errorf("tokens %d after %d, and %d, %d, %d after %d", grants["free"].Fence, last, grants[others[2]].Fence, first.Fence, second.Fence, floor)
		}
		g.gather(release, slow[:2], others...)
		late = counts.single.Load() > 5 || counts.takes.Load() == 0 || counts.frees.Load() == 0
		release(slow[2])
	}
	for _, key := range append(slow, "free", "locked", "new 0", "two 0", "held") {
		holders, err := g.Holders(t.Context(), key)
		if err != nil || (len(holders) > 0) != (key == "held") {
			t.Errorf("%s: %+v, %v", key, holders, err)
		}
	}
}
