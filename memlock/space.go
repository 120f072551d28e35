package memlock

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// A space is the state shared by the Stores of one name.
type space struct {
	name string
	base time.Time // Moment.Now counts from here
	wall int64     // base in microseconds since 1970

	mu      sync.Mutex
	entered int               // Stores ever made; numbers the sessions
	stores  map[string]*Store // open now, by session
	floor   uint64            // the highest token over all keys, so that none is kept per key
	shelves map[string]*shelf
	spare   []*shelf // empty shelves, to use again
	crowd   int      // the number of keys at which to sweep
}

// A shelf is the place of one key: the book and the watches.
type shelf struct {
	book.Book
	key     string
	watches []*watch
}

const (
	maxSpare = 256  // shelves
	maxRoom  = 64   // entries that a spare shelf may have room for
	minCrowd = 1024 // keys
)

func newSpace(name string) *space {
	now := time.Now()
	return &space{
		name: name, base: now, wall: now.UnixMicro(),
		stores: make(map[string]*Store), shelves: make(map[string]*shelf), crowd: minCrowd,
	}
}

// momentLocked is the time. The mutex sees to it that no call is earlier than the last.
func (sp *space) momentLocked() book.Moment {
	now := time.Since(sp.base)
	return book.Moment{Now: now, Wall: sp.wall + now.Microseconds()}
}

// take returns the shelf of a key. Give the shelf back by put.
func (sp *space) take(m book.Moment, key string) *shelf {
	sh := sp.shelves[key]
	if sh == nil {
		sh = sp.add(m, key)
	}
	sh.Floor = sp.floor
	return sh
}

func (sp *space) add(m book.Moment, key string) *shelf {
	if len(sp.shelves) >= sp.crowd {
		sp.sweep(m.Now)
	}
	var sh *shelf
	if n := len(sp.spare); n > 0 {
		sh, sp.spare = sp.spare[n-1], sp.spare[:n-1]
	} else {
		sh = new(shelf)
	}
	sh.key = key
	sp.shelves[key] = sh
	return sh
}

// sweep deletes the keys whose claims have all expired. Sweeping only when the number of
// keys has doubled makes the cost per key small.
func (sp *space) sweep(now time.Duration) {
	for key, sh := range sp.shelves {
		if len(sh.watches) == 0 && sh.Empty(now) {
			delete(sp.shelves, key)
		}
	}
	sp.crowd = max(2*len(sp.shelves), minCrowd)
}

// put records what a call has changed on a shelf. It adds to calls the watches to wake once
// mu is free. room says whether a claim has ended.
func (sp *space) put(sh *shelf, room bool, calls []call) []call {
	sp.floor = sh.Floor
	if len(sh.watches) > 0 {
		return sh.wake(room, calls)
	}
	sp.tidy(sh)
	return calls
}

// tidy deletes a key that nobody wants.
func (sp *space) tidy(sh *shelf) {
	if len(sh.Held)+len(sh.Queue)+len(sh.Tombs)+len(sh.watches) > 0 {
		return
	}
	delete(sp.shelves, sh.key)
	if len(sp.spare) < maxSpare && cap(sh.Held)+cap(sh.Queue)+cap(sh.Tombs) <= maxRoom {
		sh.Phase, sh.key = 0, ""
		sp.spare = append(sp.spare, sh)
	}
}

// enter makes a Store for the space.
func (sp *space) enter() *Store {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.entered++
	s := &Store{space: sp, session: strconv.Itoa(sp.entered)}
	sp.stores[s.session] = s
	return s
}

// leave ends the watches of a Store in the space. It returns the watches to wake, and
// whether the Store was the last one open.
func (sp *space) leave(s *Store) (calls []call, last bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if s.closed {
		return nil, false
	}
	s.closed = true
	delete(sp.stores, s.session)
	for _, sh := range sp.shelves {
		sh.watches = slices.DeleteFunc(sh.watches, func(w *watch) bool {
			if w.store == s {
				calls = append(calls, call{w.wake, driver.Grant{}})
			}
			return w.store == s
		})
		sp.tidy(sh)
	}
	return calls, len(sp.stores) == 0
}
