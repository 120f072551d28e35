//go:build unix

package peers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/ext/zklock"
)

// zooKeeperSides lock in ZooKeeper. That of the client library lists the line once
// its node is made, and once more when the node ahead is gone. It takes no context
// and cannot give up.
var zooKeeperSides = []side{
	{name: "holdfast/zookeeper", open: openZooKeeper},
	{name: "go-zookeeper", open: openGoZooKeeper},
}

func openZooKeeper(servers ...string) (*library, error) {
	lk, err := holdfast.Open(context.Background(), "zk://"+strings.Join(servers, ","), &holdfast.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return ours(lk), nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// dialZooKeeper returns a connection that has a session.
func dialZooKeeper(servers ...string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(servers, 2*ttl, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			return conn, nil
		}
	}
	return nil, errors.New("no session")
}

func openGoZooKeeper(servers ...string) (*library, error) {
	conn, err := dialZooKeeper(servers...)
	if err != nil {
		return nil, err
	}
	return &library{
		lock: func(_ context.Context, key string) (func() error, error) {
			l := zk.NewLock(conn, "/"+key, zk.WorldACL(zk.PermAll))
			return l.Unlock, l.Lock()
		},
		close: conn.Close,
	}, nil
}

// BenchmarkZooKeeper takes and gives back a lock that nobody else wants, beside that
// of the client library.
func BenchmarkZooKeeper(b *testing.B) {
	server := servers.StartZooKeeper(b)
	conn, err := dialZooKeeper(server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	lk := locks(b, zklock.New(zklock.Options{Servers: []string{server.Addr()}}))
	compare(b, cycles(b, lk), func(n int) {
		for range n {
			l := zk.NewLock(conn, "/key", zk.WorldACL(zk.PermAll))
			err := l.Lock()
			if err == nil {
				err = l.Unlock()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkZooKeeperHandOff compares how soon a waiter in another process has the
// lock.
func BenchmarkZooKeeperHandOff(b *testing.B) {
	t := handOff(b, zooKeeperSides, servers.StartZooKeeper(b).Addr())
	b.ReportMetric(t.least("p50-us"), "p50/best-peer")
}

// BenchmarkZooKeeperEnsembleHandOff is the same with three servers.
func BenchmarkZooKeeperEnsembleHandOff(b *testing.B) {
	t := handOff(b, zooKeeperSides, strings.Join(servers.StartEnsemble(b).Addrs(), ","))
	b.ReportMetric(t.least("p50-us"), "p50/best-peer")
}

// BenchmarkZooKeeperOneKey has four processes of eight goroutines on one key.
func BenchmarkZooKeeperOneKey(b *testing.B) {
	server := servers.StartZooKeeper(b)
	t := oneKey(b, zooKeeperSides, server.Addr(), "packets/lock", func(int) int { return server.Count("packets_received") })
	b.ReportMetric(t.most("locks/s"), "x-best-peer")
	b.ReportMetric(t.least("p99-us"), "p99/best-peer")
}

// BenchmarkZooKeeperHeld holds 10,000 locks for a while, and counts what the server
// hears of them.
func BenchmarkZooKeeperHeld(b *testing.B) {
	const n, while = 10_000, 15 * time.Second
	server := servers.StartZooKeeper(b)
	lib, err := openZooKeeper(server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(lib.close)
	held, err := hold(lib, n)
	if err != nil {
		b.Fatal(err)
	}
	<-time.After(while / 3) // until each has been renewed once, and is watched
	for b.Loop() {
		before := server.Count("packets_received")
		<-time.After(while)
		b.ReportMetric(float64(server.Count("packets_received")-before)/while.Seconds(), "packets/s")
	}
	if lost := free(held); lost > 0 {
		b.Errorf("%d of %d locks were lost", lost, n)
	}
}
