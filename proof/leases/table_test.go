package leases

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// Renewals touch no index and leave no room to be cleaned up: the table has as
// many pages after 60,000 as after the first few.
func TestRenewalsDoNotBloat(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server of its own: make prove")
	}
	t.Parallel()
	const claims, rounds = 500, 120
	server := postgres.start(t) // where nobody else has a transaction open
	at := create(t, server.URL())
	s := open(t, at)
	var held []driver.Ask
	for i := range claims {
		held = append(held, exclusive(fmt.Sprint("key", i), fmt.Sprint("id", i)))
	}
	inParallel(t, 4, claims, func(i int) error {
		_, err := s.Acquire(t.Context(), held[i])
		return err
	})
	renew := func() {
		for i, err := range s.Renew(t.Context(), asks.Renewals(held...)) {
			if err != nil {
				t.Fatalf("no. %d: %v", i, err)
			}
		}
	}
	size := func() int {
		return number(t, server.Must("SELECT pg_total_relation_size('"+table(at)+"')"))
	}
	renew()
	before := size()
	for range rounds {
		renew()
	}
	after := size()
	t.Logf("%d renewals: %d bytes before, %d after", claims*rounds, before, after)
	if after > 2*before+(1<<16) {
		t.Errorf("%d renewals made %d bytes of %d", claims*rounds, after, before)
	}
	counted := func(what string) int {
		return number(t, server.Must("SELECT coalesce("+what+", 0) FROM pg_stat_user_tables WHERE relname = '"+table(at)+"'"))
	}
	// The server counts when the connection that did it has nothing else to do.
	succeed(t, s.Close())
	servers.Until(t, "the server's counts", func() bool { return counted("n_tup_upd") >= claims*rounds })
	updates, hot := counted("n_tup_upd"), counted("n_tup_hot_upd")
	t.Logf("of %d updates %d touched no index", updates, hot)
	if hot < updates*95/100 {
		t.Errorf("of %d updates only %d touched no index", updates, hot)
	}
}

// The writes of contenders stay in proportion to their grants.
func TestContentionDoesNotBloat(t *testing.T) {
	t.Parallel()
	processes, turns := 8, 25
	if testing.Short() {
		turns = 10
	}
	at, connections := separate(t, postgres, "bloat")
	began := time.Now()
	var all sync.WaitGroup
	var stores []store
	for range processes {
		s := open(t, at)
		stores = append(stores, s)
		locks := lockerOf(t, s, nil)
		all.Go(func() {
			for range turns {
				if err := unlockAtOnce(lock(t, locks, "key")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	for _, s := range stores {
		succeed(t, s.Close())
	}
	// A connection adds its counts to those of the server before it ends; the connection that
	// made the table is idle. A turn with a parked claim writes nothing, so the number of
	// writes is not known before.
	servers.Until(t, "the connections to end", func() bool { return connections() <= 1 })
	db, _ := postgres.pool(t, at, 1)
	var writes, bytes int
	count := "SELECT n_tup_upd + n_tup_ins + n_tup_del, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE relname = '" + table(at) + "'"
	succeed(t, db.QueryRowContext(t.Context(), count).Scan(&writes, &bytes))
	// A waiter asks once a second, to keep its place.
	each := (float64(writes) - 1.5*float64(processes)*took.Seconds()) / float64(processes*turns)
	t.Logf("%d versions of the row in %v, without those of waiting %.1f for each turn; the table has %d bytes", writes, took, each, bytes)
	if each > 6 {
		t.Errorf("%.1f versions of the row for each turn", each)
	}
}

// Rows that nobody wants go when others come, and the tokens of their keys still
// grow over those that they had given.
func TestOldRowsGo(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		if testing.Short() {
			t.Skip("takes 10 s: make prove")
		}
		const keys = 1200
		at := create(t, e.shared.URL())
		s := open(t, at)
		db, _ := e.pool(t, at, 1)
		future := uint64(time.Now().Add(time.Hour).UnixMicro())
		first := exclusive("first", "a")
		first.Fence = future
		g, err := s.Acquire(t.Context(), first)
		if err != nil || !g.OK || g.Fence < future {
			t.Fatalf("%+v, %v", g, err)
		}
		succeed(t, s.Release(t.Context(), asks.Releases(first))[0])
		held := exclusive("held", "b")
		held.TTL = 24 * time.Hour
		_, err = s.Acquire(t.Context(), held)
		succeed(t, err)
		once := func(i int) error {
			c := exclusive(fmt.Sprint("once", i), fmt.Sprint("id", i))
			if g, err := s.Acquire(t.Context(), c); err != nil || !g.OK {
				return fmt.Errorf("%+v, %w", g, err)
			}
			return s.Release(t.Context(), asks.Releases(c))[0]
		}
		inParallel(t, 4, keys, once)
		_, err = db.ExecContext(t.Context(), "UPDATE "+table(at)+" SET until = until - 3700000000 WHERE name <> 'held'")
		succeed(t, err)
		inParallel(t, 4, keys, func(i int) error { return once(keys + i) })
		var rows int
		succeed(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table(at)).Scan(&rows))
		// The newest rows, the held row, and the row without a name.
		if rows > keys+2 {
			t.Errorf("%d rows are left of %d, want %d at most", rows, 2*keys+3, keys+2)
		}
		again := exclusive("first", "c")
		if g, err := s.Acquire(t.Context(), again); err != nil || g.Fence <= future {
			t.Errorf("a key whose row has gone: %+v, %v; want a token above %d", g, err, future)
		}
		succeed(t, s.Renew(t.Context(), asks.Renewals(held))[0])
	})
}

// A restored dump gives larger tokens than were ever given.
func TestRestoredFromADump(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at, _ := separate(t, e, "dumped")
		s := open(t, at)
		var last uint64
		claims := []driver.Ask{exclusive("held", "a"), exclusive("released", "b"), exclusive("later", "c")}
		claims[0].TTL = time.Hour // A slow machine takes long to dump and to restore.
		take := func(c driver.Ask) {
			t.Helper()
			g, err := s.Acquire(t.Context(), c)
			if err != nil || !g.OK || g.Fence <= last {
				t.Fatalf("%s: %+v, %v; the last token was %d", c.Key, g, err, last)
			}
			last = g.Fence
		}
		take(claims[0])
		take(claims[1])
		succeed(t, s.Release(t.Context(), asks.Releases(claims[1:2]...))[0])
		dump := filepath.Join(t.TempDir(), "dump")
		shell(t, e, at, dumper(e), "", dump)
		succeed(t, s.Release(t.Context(), asks.Releases(claims[:1]...))[0])
		take(exclusive("held", "after the dump"))
		take(claims[2])

		db, _ := e.pool(t, at, 1)
		for _, text := range []string{"DROP VIEW " + table(at) + "_claims", "DROP TABLE " + table(at)} {
			_, err := db.ExecContext(t.Context(), text)
			succeed(t, err)
		}
		shell(t, e, at, restorer(e), dump, "")
		if _, err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		succeed(t, s.Renew(t.Context(), asks.Renewals(claims[:1]...))[0]) // as it was
		succeed(t, s.Release(t.Context(), asks.Releases(claims[:1]...))[0])
		for _, key := range []string{"held", "released", "later", "new"} {
			take(exclusive(key, "d"))
		}
	})
}

func dumper(e *engine) string {
	if e == mariadb {
		return "mariadb-dump"
	}
	return "pg_dump"
}

func restorer(e *engine) string {
	if e == mariadb {
		return "mariadb"
	}
	return "psql"
}

// shell runs a program of the engine on the database of a URL, from and to files.
func shell(t *testing.T, e *engine, at, program, from, to string) {
	t.Helper()
	path, args := program, []string{without(at, "table")}
	if e == postgres {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
		if _, err := exec.LookPath(program); err != nil && len(found) > 0 {
			path = found[len(found)-1]
		}
		if program == "psql" {
			args = append(args, "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1")
		}
	} else {
		u, err := url.Parse(at)
		succeed(t, err)
		password, _ := u.User.Password()
		args = []string{"--no-defaults", "--protocol=tcp", "--host=" + u.Hostname(), "--port=" + u.Port(),
			"--user=" + u.User.Username(), "--password=" + password, strings.Trim(u.Path, "/")}
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if from != "" {
		file, err := os.Open(from)
		succeed(t, err)
		defer file.Close()
		cmd.Stdin = file
	}
	if to != "" {
		file, err := os.Create(to)
		succeed(t, err)
		defer file.Close()
		cmd.Stdout = file
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, complaint.String())
	}
}
