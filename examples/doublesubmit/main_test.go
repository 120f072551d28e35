package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
)

// redis serves all tests.
var redis *servers.Redis

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return serveForTests(args[0], args[1], args[2]) })
	os.Exit(servers.Main(m, func(tb servers.TB) { redis = servers.StartRedis(tb) }))
}

// ttl is how long the others wait for a server that was killed, and long enough for a slow
// machine to keep its locks.
const ttl = 10 * time.Second

// serveForTests serves orders whose work says that it has begun, and ends when it is
// told to.
func serveForTests(redis, orders, wait string) error {
	limit, err := time.ParseDuration(wait)
	if err != nil {
		return err
	}
	told := bufio.NewReader(os.Stdin)
	work := func(context.Context) error {
		fmt.Println("working")
		_, err := told.ReadString('\n')
		return err
	}
	c := config{redis: redis, orders: orders, listen: "127.0.0.1:0", ttl: ttl, wait: limit}
	err = run(context.Background(), c, work)
	for errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) { // on a slow machine
		err = run(context.Background(), c, work)
	}
	return err
}

// A server is a process.
type server struct {
	*workers.Worker
	url string
}

// finish tells the server to end its work.
func (s *server) finish(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(s.In, "finish\n"); err != nil {
		t.Error(err)
	}
}

// A fleet is several servers with one file of orders.
type fleet struct {
	servers []*server
	wait    time.Duration
	file    string
	working chan *server // each that has begun to work
}

func startFleet(t *testing.T, size int, wait time.Duration) *fleet {
	t.Helper()
	f := &fleet{wait: wait, file: filepath.Join(t.TempDir(), "orders.db"), working: make(chan *server, 100)}
	for range size {
		f.servers = append(f.servers, f.start(t))
	}
	return f
}

func (f *fleet) start(t *testing.T) *server {
	t.Helper()
	s := &server{Worker: workers.Start(t, redis.URL(), f.file, f.wait.String())}
	lines := bufio.NewScanner(s.Out)
	if !lines.Scan() {
		t.Fatal("a server does not start")
	}
	s.url = lines.Text()
	go func() {
		for lines.Scan() {
			f.working <- s
		}
	}()
	return s
}

// works returns a server that has begun to work.
func (f *fleet) works(t *testing.T) *server {
	t.Helper()
	select {
	case s := <-f.working:
		return s
	case <-time.After(time.Minute):
		t.Fatal("no server works")
		return nil
	}
}

// taken is how many orders there are.
func (f *fleet) taken(t *testing.T) (n int) {
	t.Helper()
	o, err := openOrders(t.Context(), f.file)
	if err != nil {
		t.Fatal(err)
	}
	defer o.db.Close()
	if err := o.db.QueryRowContext(t.Context(), `SELECT count(*) FROM orders`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
