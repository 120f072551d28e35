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

// A gate counts the statements that take or free one key, and holds the first of them back until it is
// opened. It also counts the statements for several keys.
type gate struct {
	single, shared atomic.Int64
	holds          int64
	came, open     chan struct{}
}

func (g *gate) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	switch text := data.SQL; {
	case strings.HasPrefix(text, "WITH asked"):
		g.shared.Add(1)
	case strings.HasSuffix(text, "RETURNING fence"), strings.HasSuffix(text, "RETURNING name"):
		if g.single.Add(1) <= g.holds {
			g.came <- struct{}{}
			<-g.open
		}
	}
	return ctx
}

func (*gate) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A gathering is a store whose calls gather while the gate holds statements back.
type gathering struct {
	*testing.T
	*Store
	*gate
	table string
}

// lock locks the row of a key by hand.
func (g *gathering) lock(key string) (unlock func()) {
	conn := must.Get(pgx.Connect(g.Context(), server.URL()))
	tx := must.Get(conn.Begin(g.Context()))
	must.Get(tx.Exec(g.Context(), "SELECT FROM "+g.table+" WHERE name = $1 FOR UPDATE", key))
	return func() {
		if err := errors.Join(tx.Commit(g.Context()), conn.Close(g.Context())); err != nil {
			g.Error(err)
		}
	}
}

// gather begins calls for slow keys, which the gate holds back, and then calls for other keys, and for
// the key "locked", whose row stays locked until all others have ended. It reports whether all
// others have shared statements.
func (g *gathering) gather(do func(name string), slow []string, others ...string) bool {
	g.Helper()
	g.holds = int64(len(slow))
	g.single.Store(0)
	g.shared.Store(0)
	ended := make(chan string, len(slow)+len(others)+1)
	call := func(name string) {
		do(name)
		ended <- name
	}
	unlock := g.lock("locked")
	for _, name := range slow {
		go call(name)
		<-g.came
	}
	for _, name := range append(others, "locked") {
		go call(name)
	}
	for range slow {
		g.open <- struct{}{}
	}
	for n := range cap(ended) {
		if n == cap(ended)-1 {
			unlock()
		}
		if name := <-ended; name == "locked" && n < cap(ended)-1 {
			g.Error("a call has passed a lock on its row")
		}
	}
	return g.single.Load() == g.holds && g.shared.Load() > 0
}

// Calls that come while statements are under way gather, and share the next statement. Each gets what it
// would get alone, and waits for no row of another, under any isolation. Rounds follow until all calls
// have come in time.
func TestTogether(t *testing.T) {
	for _, isolation := range []string{"read committed", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			testTogether(t, isolation)
		})
	}
}

func testTogether(t *testing.T, isolation string) {
	held := &gate{came: make(chan struct{}), open: make(chan struct{})}
	config := must.Get(pgxpool.ParseConfig(server.URL() + "&pool_max_conns=4"))
	config.ConnConfig.Tracer = held
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = isolation
	pool := servers.Insist(t, func(ctx context.Context) (*pgxpool.Pool, error) { return connect(ctx, config) })
	defer pool.Close()
	g := &gathering{t, nil, held, "together_" + strings.ReplaceAll(isolation, " ", "_")}
	g.Store = must.Get(New(pool, &Options{Table: g.table}))
	defer g.Close()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, g.Create(ctx) })
	const floor = uint64(1) << 52 // the highest token of rows that were deleted
	server.Must(fmt.Sprintf("UPDATE %s SET fence = %d WHERE name = ''", g.table, floor))

	// The name of a call is its key, or its key and a number.
	claim := func(name string) driver.Claim {
		key, _, _ := strings.Cut(name, "#")
		return driver.Claim{Key: key, ID: "id of " + name, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Hour}
	}
	grants := make(map[string]*driver.Grant)
	acquire := func(name string) {
		var err error
		if *grants[name], err = g.Acquire(t.Context(), driver.Ask{Claim: claim(name), Span: 1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	release := func(name string) {
		errs := g.Release(t.Context(), []driver.Release{{Claim: claim(name)}})
		err := errors.Join(errs...)
		if held := grants[name].OK; held != (err == nil) || !held && !errors.Is(err, driver.ErrLost) {
			t.Errorf("%s, held %t: %v", name, held, err)
		}
	}
	slow := []string{"slow 1", "slow 2", "slow 3"}
	for _, name := range append(slow, "free", "locked", "held#holder") {
		grants[name] = new(driver.Grant)
		acquire(name)
		if name != "held#holder" {
			release(name)
		}
	}
	for round, taken, freed := 0, false, false; !taken || !freed; round++ {
		last := grants["free"].Fence
		others := []string{"free", "held", fmt.Sprint("new ", round), fmt.Sprint("two ", round, "#1"), fmt.Sprint("two ", round, "#2")}
		for _, name := range others {
			grants[name] = new(driver.Grant)
		}
		shared := g.gather(acquire, slow, others...)
		taken = taken || shared
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
		winner := others[3]
		if second.OK {
			winner = others[4]
		}
		shared = g.gather(release, slow[:2], append(others[:3:3], winner)...) // of two claims of a key only one shares a statement
		freed = freed || shared
		g.holds = 0
		release(slow[2])
	}
	for _, key := range append(slow, "free", "locked", "new 0", "two 0", "held") {
		holders, err := g.Holders(t.Context(), key)
		if err != nil || (len(holders) > 0) != (key == "held") {
			t.Errorf("%s: %+v, %v", key, holders, err)
		}
	}
}
