package worker

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/internal/fileurl"
	"github.com/holdfast-go/holdfast/redlock"
)

// A clock is the wall clock of a worker, as far as its store goes.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// obey sets the clock ahead, or back, by the duration in each line, until the lines end.
func (c *clock) obey(lines *bufio.Reader) {
	for {
		text, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if by, err := time.ParseDuration(strings.TrimSpace(text)); err == nil {
			c.ahead.Store(int64(by))
		}
	}
}

// clocked opens a store that uses the worker's clock. The store was started by the run, and
// is files or Redlock: the two stores read the wall clock of their clients.
func (w *worker) clocked(ctx context.Context, opts *holdfast.Options) (*holdfast.Locker, error) {
	u, err := driver.ParseURL(w.Store)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "redlock" {
		store, err := w.redlock(ctx, strings.Split(u.Host, ","))
		if err != nil {
			return nil, err
		}
		return holdfast.New(store, opts)
	}
	path, err := fileurl.Path(u, w.Store)
	if err != nil {
		return nil, err
	}
	store, err := filelock.New(path, &filelock.Options{Clock: w.clock.now})
	if err != nil {
		return nil, err
	}
	return holdfast.New(store, opts)
}

func (w *worker) redlock(ctx context.Context, hosts []string) (*redlock.Store, error) {
	var nodes []driver.Store
	for _, host := range hosts {
		node, err := driver.Open(ctx, "redis://"+host)
		if err != nil {
			for _, node := range nodes {
				err = errors.Join(err, node.Close())
			}
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return redlock.New(nodes, &redlock.Options{Names: hosts, Quarantine: w.Workload.TTL, Clock: w.clock.now})
}
