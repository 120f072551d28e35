package memlock

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/holdfast-go/holdfast/driver"
)

func init() { driver.Register("mem", open) }

// named holds the spaces that a URL can name and that are open.
var named struct {
	sync.Mutex
	spaces map[string]*space
}

func open(_ context.Context, u *url.URL) (driver.Store, error) {
	if err := driver.NewParams(u).Err(); err != nil {
		return nil, err
	}
	if u.User != nil || u.Path != "" || u.Opaque != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%w: want mem:// or mem://name and nothing else", driver.ErrURL)
	}
	if u.Host == "" {
		return New(), nil
	}
	named.Lock()
	defer named.Unlock()
	sp := named.spaces[u.Host]
	if sp == nil {
		if named.spaces == nil {
			named.spaces = make(map[string]*space)
		}
		sp = newSpace(u.Host)
		named.spaces[u.Host] = sp
	}
	return sp.enter(), nil
}

// Close ends the watches of this Store and makes later calls fail. The claims of the Store
// expire on their own, even if a second Store of the same name is open. A second Close does
// nothing.
func (s *Store) Close() error {
	named.Lock()
	calls, last := s.space.leave(s)
	if last {
		delete(named.spaces, s.space.name)
	}
	named.Unlock()
	ring(calls)
	return nil
}
