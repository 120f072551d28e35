//go:build unix

package peers

import (
	"context"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// etcdSides lock in etcd. The other is the recipe that comes with its client.
var etcdSides = []side{
	{name: "holdfast/etcd", open: openEtcd},
	{name: "concurrency.Mutex", open: openMutex},
}

func openEtcd(servers ...string) (*library, error) {
	lk, err := holdfast.Open(context.Background(), "etcd://"+servers[0], &holdfast.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return ours(lk), nil
}

// openMutex has a session, which is its owner, for each goroutine that locks at
// the same time: those that share one do not exclude each other.
func openMutex(servers ...string) (*library, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: servers, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var idle []*concurrency.Session
	borrow := func() (*concurrency.Session, error) {
		mu.Lock()
		defer mu.Unlock()
		if n := len(idle); n > 0 {
			s := idle[n-1]
			idle = idle[:n-1]
			return s, nil
		}
		return concurrency.NewSession(client, concurrency.WithTTL(int(ttl.Seconds())))
	}
	giveBack := func(s *concurrency.Session) {
		mu.Lock()
		defer mu.Unlock()
		idle = append(idle, s)
	}
	return &library{
		lock: func(ctx context.Context, key string) (func() error, error) {
			s, err := borrow()
			if err != nil {
				return nil, err
			}
			m := concurrency.NewMutex(s, "mutex/"+key)
			if err := m.Lock(ctx); err != nil {
				giveBack(s)
				return nil, err
			}
			return func() error {
				defer giveBack(s)
				return m.Unlock(context.Background())
			}, nil
		},
		close: func() {
			for _, s := range idle {
				_ = s.Close()
			}
			_ = client.Close()
		},
	}, nil
}

// BenchmarkEtcdUncontended has one goroutine, on a session that is ready.
func BenchmarkEtcdUncontended(b *testing.B) {
	at := servers.StartEtcd(b).Addr()
	var open []*library
	for _, s := range etcdSides {
		lib, err := s.open(at)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(lib.close)
		open = append(open, lib)
	}
	alternate(b, open[0], open[1])
}

// BenchmarkEtcdOneKeyProcesses has four processes of eight goroutines on one key,
// and counts what etcd wrote for a lock.
func BenchmarkEtcdOneKeyProcesses(b *testing.B) {
	e := servers.StartEtcd(b)
	t := oneKey(b, etcdSides, e.Addr(), "writes/lock", func(int) int { return e.Revision() })
	b.ReportMetric(t.most("locks/s"), "x-best-peer")
}

// BenchmarkEtcdHandOff compares how soon a waiter in another process has the lock.
func BenchmarkEtcdHandOff(b *testing.B) {
	t := handOff(b, etcdSides, servers.StartEtcd(b).Addr())
	b.ReportMetric(t.least("p50-us"), "p50/best-peer")
}
