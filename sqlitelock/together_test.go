package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// A gate holds the first statement that takes or frees one key back until it is opened, and counts such
// statements. If shared is set, the gate also holds the first statement for several keys back.
type gate struct {
	sqlstore.Client
	came, open chan struct{}
	single     atomic.Int64
	shared     bool
	several    atomic.Int64
}

func newGate(s *Store) *gate {
	return &gate{Client: sqlstore.SQLite.Client(s.file.db), came: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) Query(ctx context.Context, st sqlstore.Statement, each func(sqlstore.Scan) error) error {
	single := strings.HasSuffix(st.Text, "RETURNING fence") || strings.Contains(st.Text, "name IN (")
	several := strings.Contains(st.Text, "UPDATE") && strings.Contains(st.Text, "json_each")
	// If the last statement of the round before still runs, the first call of a round is for several keys.
	first := (single || several && g.single.Load() == 0) && g.single.Add(1) == 1
	if first || several && g.shared && g.several.Add(1) == 1 {
		g.came <- struct{}{}
		<-g.open
	}
	return g.Client.Query(ctx, st, each)
}

// Calls that come while a statement is under way share the next statement. Each gets what it would get
// alone. Rounds follow until all calls have come in time.
func TestTogether(t *testing.T) {
	t.Parallel()
	s := opened(t, "sqlite://"+filepath.Join(t.TempDir(), "locks.db"))
	g := newGate(s)
	rows := must.Get(sqlstore.New(g, sqlstore.SQLite, nil))
	const floor = uint64(1) << 52 // the highest token of rows that were deleted
	must.Get(s.file.db.Exec("UPDATE holdfast SET fence = ? WHERE name = ''", int64(floor)))

	// The name of a call is its key, or its key and a number.
	ask := func(name string) driver.Ask {
		a := exclusive("id of " + name)
		a.Key, _, _ = strings.Cut(name, "#")
		return a
	}
	grants := make(map[string]*driver.Grant)
	// together runs calls for all names while the first waits, and reports whether they shared statements.
	together := func(names []string, do func(name string) error) bool {
		g.single.Store(0)
		var all sync.WaitGroup
		call := func(name string) {
			if err := do(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		all.Go(func() { call(names[0]) })
		<-g.came
		for _, name := range names[1:] {
			all.Go(func() { call(name) })
		}
		g.open <- struct{}{}
		all.Wait()
		return g.single.Load() == 1
	}
	held := granted(t, s, ask("held#holder"))
	for round, taken, freed := 0, false, false; !taken || !freed; round++ {
		names := []string{"first", "free", "held", fmt.Sprint("new ", round), fmt.Sprint("two ", round, "#1"), fmt.Sprint("two ", round, "#2")}
		last := new(driver.Grant)
		if round > 0 {
			last = grants["free"]
		}
		for _, name := range names {
			grants[name] = new(driver.Grant)
		}
		shared := together(names, func(name string) (err error) {
			*grants[name], err = rows.Acquire(t.Context(), ask(name))
			return err
		})
		taken = taken || shared
		first, second := grants[names[4]], grants[names[5]]
		switch {
		case !grants["first"].OK || !grants["free"].OK || !grants[names[3]].OK:
			t.Errorf("a free key was refused: %+v, %+v, %+v", grants["first"], grants["free"], grants[names[3]])
		case grants["held"].OK || first.OK == second.OK:
			t.Errorf("one of two claims has to get a new key, and none a key that is held: %+v, %+v, %+v", first, second, grants["held"])
		case grants["free"].Fence <= max(last.Fence, floor) || grants[names[3]].Fence <= floor || max(first.Fence, second.Fence) <= floor:
			t.Errorf("tokens %d after %d, and %d, %d, %d after %d", grants["free"].Fence, last.Fence, grants[names[3]].Fence, first.Fence, second.Fence, floor)
		}
		// Of two claims of one key, only one call shares a statement.
		shared = together(names[:5], func(name string) (err error) {
			if errs := rows.Release(t.Context(), []driver.Release{{Claim: ask(name).Claim}}); errs != nil {
				err = errs[0]
			}
			if !grants[name].OK && errors.Is(err, driver.ErrLost) {
				return nil
			}
			return err
		})
		freed = freed || shared
		if second.OK {
			rows.Release(t.Context(), []driver.Release{{Claim: ask(names[5]).Claim}})
		}
	}
	for _, key := range []string{"first", "free", "new 0", "two 0", "held"} {
		holders, err := rows.Holders(t.Context(), key)
		if err != nil || (len(holders) > 0) != (key == "held") {
			t.Errorf("%s: %+v, %v", key, holders, err)
		}
	}
	if !held.OK {
		t.Errorf("%+v", held)
	}
}

// A caller leaves while a shared statement is under way, and does not know whether it holds the key.
// Rounds follow until the caller has come in time.
func TestLeaveTogether(t *testing.T) {
	t.Parallel()
	s := opened(t, "sqlite://"+filepath.Join(t.TempDir(), "locks.db"))
	for round, shared := 0, false; !shared; round++ {
		g := newGate(s)
		g.shared = true
		rows := must.Get(sqlstore.New(g, sqlstore.SQLite, nil))
		acquire := func(ctx context.Context, key string) (end chan error) {
			a := exclusive(fmt.Sprint(key, round))
			a.Key, end = a.ID, make(chan error, 1)
			go func() {
				_, err := rows.Acquire(ctx, a)
				end <- err
			}()
			return end
		}
		ctx, leave := context.WithCancel(t.Context())
		first := acquire(t.Context(), "first")
		<-g.came
		left, stays := acquire(ctx, "left"), acquire(t.Context(), "stays")
		g.open <- struct{}{}
		select {
		case <-g.came:
			shared = true
			leave()
			close(g.open)
			if err := <-left; err != nil && !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrUnwritten) {
				t.Errorf("%v, want that the caller has left and knows nothing", err)
			}
		case err := <-left:
			if err != nil {
				t.Error(err)
			}
			select {
			case <-g.came:
				close(g.open)
			case err := <-stays:
				stays <- err
			}
		}
		if err := errors.Join(<-first, <-stays); err != nil {
			t.Error(err)
		}
		leave()
	}
}
