package stores

import (
	"context"
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
