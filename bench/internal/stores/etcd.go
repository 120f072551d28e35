package stores

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func etcd() Store {
	return Store{
		Name: "etcd", Title: "etcd", Cost: "writes", Waiting: 1000, Modules: []string{"go.etcd.io/etcd/client/v3"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastOf("etcd"), Renews: true},
			{Name: "concurrency.Mutex", Kind: Peer, Open: openMutex},
			{Name: "Txn on one lease, 5 ms", Kind: Bare, Open: openTxn},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			e := servers.StartEtcd(tb)
			return &Server{At: []string{e.Direct()}, About: e.Version() + " on disk", Count: func(Side) int { return e.Revision() }}
		},
	}
}

func newEtcd(at []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: at, Logger: zap.NewNop()})
}

// openMutex has a session for every goroutine that locks at the same time. The session is
// the owner of a lock: a shared session excludes nothing.
func openMutex(at []string, ttl time.Duration) (*Library, error) {
	client, err := newEtcd(at)
	if err != nil {
		return nil, err
	}
	p := &sessions{client: client, ttl: int(ttl.Seconds())}
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			s, err := p.borrow()
			if err != nil {
				return nil, err
			}
			m := concurrency.NewMutex(s, "mutex/"+key)
			if err := m.Lock(ctx); err != nil {
				p.giveBack(s)
				return nil, err
			}
			return func() error {
				defer p.giveBack(s)
				return m.Unlock(context.Background())
			}, nil
		},
		Close: p.close,
	}, nil
}

// sessions is a pool of idle sessions. A session may end while a bench leaves the machine no
// time to keep the session alive, and is replaced.
type sessions struct {
	client *clientv3.Client
	ttl    int // seconds

	mu   sync.Mutex
	idle []*concurrency.Session
}

func (p *sessions) borrow() (*concurrency.Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked()
}

// share returns the session of all callers.
func (p *sessions) share() (*concurrency.Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.takeLocked()
	if err == nil {
		p.idle = append(p.idle, s)
	}
	return s, err
}

func (p *sessions) takeLocked() (*concurrency.Session, error) {
	for n := len(p.idle); n > 0; n-- {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		select {
		case <-s.Done():
		default:
			return s, nil
		}
	}
	return concurrency.NewSession(p.client, concurrency.WithTTL(p.ttl))
}

func (p *sessions) giveBack(s *concurrency.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

func (p *sessions) close() {
	for _, s := range p.idle {
		_ = s.Close()
	}
	_ = p.client.Close()
}

// openTxn creates the key if the key does not exist. All keys belong to one lease that is
// kept alive, and replaced if it ends all the same.
func openTxn(at []string, ttl time.Duration) (*Library, error) {
	client, err := newEtcd(at)
	if err != nil {
		return nil, err
	}
	p := &sessions{client: client, ttl: int(ttl.Seconds())}
	if _, err := p.share(); err != nil {
		p.close()
		return nil, err
	}
	lock := func(ctx context.Context, key string) (func() error, error) {
		owner := rand.Text()
		err := poll(ctx, longPause, func() (bool, error) {
			s, err := p.share()
			if err != nil {
				return false, err
			}
			r, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
				Then(clientv3.OpPut(key, owner, clientv3.WithLease(s.Lease()))).Commit()
			if err == nil {
				return r.Succeeded, nil
			}
			if l, _ := client.TimeToLive(ctx, s.Lease()); l != nil && l.TTL < 0 {
				return false, nil // The session has ended, and soon knows.
			}
			return false, err
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			r, err := client.Txn(context.Background()).If(clientv3.Compare(clientv3.Value(key), "=", owner)).
				Then(clientv3.OpDelete(key)).Commit()
			return gone(err == nil && r.Succeeded, err)
		}, nil
	}
	return &Library{lock, p.close}, nil
}
