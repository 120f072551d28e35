//go:build unix

package elections

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/elect"
	_ "github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
	_ "github.com/holdfast-go/holdfast/redislock"
)

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return campaign(args[0], args[1]) })
	os.Exit(m.Run())
}

// campaign is what a candidate does, until its input ends.
func campaign(url, ttl string) error {
	d, err := time.ParseDuration(ttl)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	locks, err := holdfast.Open(ctx, url, &holdfast.Options{TTL: d})
	for began := time.Now(); err != nil && time.Since(began) < patience; {
		// The server is there, but a machine may be too slow for it to say so.
		locks, err = holdfast.Open(ctx, url, &holdfast.Options{TTL: d})
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	err = elect.Run(ctx, locks, "job", lead)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrLost)) {
		err = locks.Close()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // A slow machine: the lock ends with its TTL.
	}
	return err
}

// lead writes with the token of the lock. Between the look at the lock and the
// write there is work, in which the leader may be paused.
func lead(ctx context.Context) error {
	lock, _ := holdfast.FromContext(ctx)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		at := time.Now()
		token := lock.Fence()
		if token == 0 {
			return lock.Err()
		}
		<-tick.C
		if _, err := fmt.Println(token, at.UnixNano()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// A candidate is another process, as seen from the test.
type candidate struct {
	*workers.Worker
	e     *election
	name  string
	proxy *servers.Proxy // its network
	read  chan struct{}  // closed when all it has said is in the log
}

func (e *election) start(name string, proxy *servers.Proxy) *candidate {
	e.Helper()
	w := workers.Start(e, fmt.Sprintf(e.url, proxy.Addr()), e.ttl.String())
	c := &candidate{Worker: w, e: e, name: name, proxy: proxy, read: make(chan struct{})}
	lines := bufio.NewScanner(c.Out)
	if !lines.Scan() || lines.Text() != "ready" {
		e.Fatalf("%s has not begun: %q, %v", name, lines.Text(), lines.Err())
	}
	go func() {
		defer close(c.read)
		for lines.Scan() {
			c.note(lines.Text())
		}
	}()
	return c
}

// note takes down what the candidate writes.
func (c *candidate) note(line string) {
	var nanos int64
	w := entry{who: c.name}
	if _, err := fmt.Sscan(strings.TrimSpace(line), &w.token, &nanos); err != nil {
		c.e.Errorf("%s says %q: %v", c.name, line, err)
		return
	}
	w.at = time.Unix(0, nanos)
	c.e.log.write(w)
}

// finish lets the candidate end by itself.
func (c *candidate) finish() {
	c.e.Helper()
	c.e.must(c.In.Close())
	<-c.read
	if err := c.Wait(); err != nil {
		c.e.Errorf("%s: %v", c.name, err)
	}
}
