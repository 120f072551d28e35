package stores

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/moby/locker"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func memory() Store {
	return Store{
		Name: "memory", Title: "Memory", OneProcess: true, Modules: []string{"github.com/moby/locker"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "moby/locker", Kind: Peer, Open: openLocker},
			{Name: "map of channels", Kind: Bare, Open: openChannels},
			{Name: "shards of queues", Kind: Bare, Open: openShards},
			{Name: "no lock: the bench itself", Kind: Bare, Open: openNothing, Empty: true},
		},
		Start: func(servers.TB, time.Duration) *Server { return &Server{At: []string{"mem://"}} },
	}
}

func openLocker([]string, time.Duration) (*Library, error) {
	names := locker.New()
	return &Library{
		Lock: func(_ context.Context, key string) (func() error, error) {
			names.Lock(key)
			return func() error { return names.Unlock(key) }, nil
		},
		Close: func() {},
	}, nil
}

func openNothing([]string, time.Duration) (*Library, error) {
	unlock := func() error { return nil }
	return &Library{
		Lock:  func(context.Context, string) (func() error, error) { return unlock, nil },
		Close: func() {},
	}, nil
}

// openChannels has the simplest FIFO lock: a channel with one token. Go serves blocked
// receivers in order.
func openChannels([]string, time.Duration) (*Library, error) {
	var tokens sync.Map
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			token, ok := tokens.Load(key)
			if !ok {
				full := make(chan struct{}, 1)
				full <- struct{}{}
				token, _ = tokens.LoadOrStore(key, full)
			}
			c := token.(chan struct{})
			select {
			case <-c:
				return func() error { c <- struct{}{}; return nil }, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		Close: func() {},
	}, nil
}

// A shard has a queue of waiters, maybe an empty one, for each locked key.
type shard struct {
	mu     sync.Mutex
	queues map[string][]chan struct{}
}

// openShards has a FIFO lock that a context can cancel and that forgets free keys.
func openShards([]string, time.Duration) (*Library, error) {
	var shards [64]shard
	for i := range shards {
		shards[i].queues = make(map[string][]chan struct{})
	}
	seed := maphash.MakeSeed()
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			s := &shards[maphash.String(seed, key)%uint64(len(shards))]
			return func() error { s.unlock(key); return nil }, s.lock(ctx, key)
		},
		Close: func() {},
	}, nil
}

func (s *shard) lock(ctx context.Context, key string) error {
	s.mu.Lock()
	queue, locked := s.queues[key]
	if !locked {
		s.queues[key] = nil
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{}, 1)
	s.queues[key] = append(queue, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	place := slices.Index(s.queues[key], turn)
	if place >= 0 {
		s.queues[key] = slices.Delete(s.queues[key], place, place+1)
	}
	s.mu.Unlock()
	if place < 0 { // unlock has just handed the key over
		s.unlock(key)
	}
	return ctx.Err()
}

// unlock hands the key to the first waiter.
func (s *shard) unlock(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queues[key]
	if len(queue) == 0 {
		delete(s.queues, key)
		return
	}
	queue[0] <- struct{}{}
	s.queues[key] = queue[1:]
}
