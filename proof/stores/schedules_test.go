// Package schedules tests schedlock on real stores.
package schedules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	_ "github.com/holdfast-go/holdfast/etcdlock"
	_ "github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/memcachelock"
	_ "github.com/holdfast-go/holdfast/mysqllock"
	_ "github.com/holdfast-go/holdfast/pglock"
	_ "github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/schedlock"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
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
		"Postgres": {func(t *testing.T) string { return servers.AnyPostgres(t, "fsync = off").URL() }, true},
		"sessions": {func(t *testing.T) string { return servers.AnyPostgres(t, "fsync = off").URL() + "&mode=session" }, false},
		"MariaDB":  {func(t *testing.T) string { return servers.AnyMariaDB(t, "innodb_flush_method = nosync").URL() }, true},
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
			if err := first.Locks.Close(); err != nil {
				t.Error(err)
			}
			if _, err := take(t, url, first.Name); !errors.Is(err, schedlock.ErrTaken) {
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

// take takes a tick of the job of that name, or of any whose tick nobody has taken, and
// returns the job. If a busy server does not answer in time, take tries another job,
// because the tick may be taken.
func take(t *testing.T, url, name string) (job schedlock.Job, err error) {
	t.Helper()
	locks, err := holdfast.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	now := time.Date(2026, 11, 21, 20, 0, 30, 0, time.UTC)
	job = schedlock.Job{Locks: locks, Name: name, Schedule: schedlock.Every(time.Hour), Clock: func() time.Time { return now }}
	for try := range 100 {
		if name == "" {
			job.Name = fmt.Sprint("job", try)
		}
		if _, err = job.Take(t.Context()); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return job, err
}
