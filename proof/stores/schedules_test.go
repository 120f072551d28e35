package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/schedlock"
)

// A tick of a schedule stays taken when the replica that took it has gone; a store that
// cannot do that says so.
func TestSchedules(t *testing.T) {
	for name, keeps := range map[string]bool{
		"file": true, "SQLite": true, "Redis": true, "etcd": true, "Memcached": true, "Postgres": true, "sessions": false, "MariaDB": true,
		"SQL Server": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t, name)
			first, err := take(t, url, "")
			switch {
			case !keeps && errors.Is(err, holdfast.ErrInvalid):
				return
			case err != nil || !keeps:
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

// take takes a tick of the job of that name, or of any whose tick nobody has taken, and
// returns the job. If a busy server does not answer in time, take tries another job,
// because the tick may be taken.
func take(t *testing.T, url, name string) (job schedlock.Job, err error) {
	t.Helper()
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
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
