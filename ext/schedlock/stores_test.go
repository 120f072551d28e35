package schedlock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	_ "github.com/holdfast-go/holdfast/ext/etcdlock"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	_ "github.com/holdfast-go/holdfast/ext/memcachelock"
	_ "github.com/holdfast-go/holdfast/ext/mysqllock"
	_ "github.com/holdfast-go/holdfast/ext/pglock"
	_ "github.com/holdfast-go/holdfast/ext/redislock"
	_ "github.com/holdfast-go/holdfast/ext/sqlitelock"
	_ "github.com/holdfast-go/holdfast/filelock"
)

// On real stores, a tick stays taken when the replica that took it has gone; a store
// that cannot do that says so.
func TestStores(t *testing.T) {
	for name, test := range map[string]struct {
		start func(t *testing.T) string
		keeps bool
	}{
		"file":     {func(t *testing.T) string { return "file://" + filepath.Join(t.TempDir(), "locks") }, true},
		"SQLite":   {func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "locks.db") }, true},
		"Redis":    {func(t *testing.T) string { return "redis://" + servers.StartRedis(t).Addr() }, true},
		"etcd":     {func(t *testing.T) string { return servers.StartEtcd(t).URL() }, true},
		"Memcache": {func(t *testing.T) string { return servers.StartMemcached(t).URL() }, true},
		"Postgres": {func(t *testing.T) string { return servers.AnyPostgres(t).URL() }, true},
		"sessions": {func(t *testing.T) string { return servers.AnyPostgres(t).URL() + "&mode=session" }, false},
		"MariaDB":  {func(t *testing.T) string { return servers.AnyMariaDB(t).URL() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := test.start(t)
			create(t, url)
			first, err := take(t, url, "")
			switch {
			case !test.keeps && errors.Is(err, holdfast.ErrInvalid):
				return
			case err != nil || !test.keeps:
				t.Fatalf("the first replica: %v", err)
			}
			if err := first.job.Locks.Close(); err != nil {
				t.Error(err)
			}
			if _, err := take(t, url, first.job.Name); !errors.Is(err, ErrTaken) {
				t.Errorf("another replica: %v, want ErrTaken", err)
			}
		})
	}
}

// create makes what a store needs.
func create(t *testing.T, url string) {
	t.Helper()
	store, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if c, ok := store.(driver.Creator); ok {
		if err := c.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// take takes a tick of the job of that name, or of any whose tick nobody has taken. On
// a busy machine a server may be too slow to answer: then it asks again, for another
// job, because the tick may be taken.
func take(t *testing.T, url, name string) (turn *Turn, err error) {
	t.Helper()
	locks, err := holdfast.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	now := at(t, "2026-11-21T20:00:30Z")
	job := Job{Locks: locks, Name: name, Schedule: Every(time.Hour), Clock: func() time.Time { return now }}
	for try := range 100 {
		if name == "" {
			job.Name = fmt.Sprint("job", try)
		}
		if turn, err = job.Take(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return turn, err
}
