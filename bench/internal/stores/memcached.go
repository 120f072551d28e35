package stores

import (
	"context"
	"errors"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func memcached() Store {
	return Store{
		Name: "memcached", Title: "Memcached", Cost: "commands", Waiting: 100, Polls: true,
		Modules: []string{"github.com/bradfitz/gomemcache"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastOf("memcached"), Renews: true},
			{Name: "add, delete on gomemcache, 1 ms", Kind: Bare, Open: gomemcacheEvery(pause), Patient: true},
			{Name: "add, delete on gomemcache, 5 ms", Kind: Bare, Open: gomemcacheEvery(longPause)},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			m := servers.StartMemcached(tb, "-c", "4096") // gomemcache opens a connection for each goroutine
			return &Server{At: []string{m.Addr()}, About: m.Version(), Count: func(Side) (n int) {
				for _, name := range []string{"cmd_get", "cmd_set", "cmd_touch", "delete_hits", "delete_misses"} {
					n += m.Stat(name)
				}
				return n
			}}
		},
	}
}

// gomemcacheEvery deletes the key without checking the owner, as most people do.
func gomemcacheEvery(pause time.Duration) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		client := memcache.New(at...)
		client.MaxIdleConns = 64
		client.Timeout = 5 * time.Second
		return &Library{
			Lock: func(ctx context.Context, key string) (func() error, error) {
				err := poll(ctx, pause, func() (bool, error) {
					err := client.Add(&memcache.Item{Key: key, Value: []byte("taken"), Expiration: int32(ttl.Seconds())})
					if errors.Is(err, memcache.ErrNotStored) {
						return false, nil
					}
					return err == nil, err
				})
				return func() error { return client.Delete(key) }, err
			},
			Close: func() { _ = client.Close() },
		}, nil
	}
}
