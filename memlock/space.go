package memlock

import (
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// parts is how many parts a space has: enough for the processors of a large machine.
const parts = 16

// A space is the state shared by the Stores of one name. Lock named before mu, and mu before the
// mutex of a part. No callback is made under any of them.
type space struct {
	name  string
	base  time.Time     // Moment.Now counts from here
	wall  int64         // base in microseconds since 1970
	floor atomic.Uint64 // the highest token over all keys, so that none is kept per key
	seed  maphash.Seed  // of the hash that chooses the part of a key
	parts [parts]part   // a key belongs to one of them

	mu      sync.Mutex
	entered int               // Stores ever made; numbers the sessions
	stores  map[string]*Store // open now, by session
}

// A part is the keys behind one mutex. Calls on keys of different parts do not wait for each
// other.
type part struct {
	space   *space
	mu      sync.Mutex
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
	maxSpare = 16 // shelves
	maxRoom  = 64 // entries that a spare shelf may have room for
	minCrowd = 64 // keys
)

func newSpace(name string) *space {
	now := time.Now()
	sp := &space{name: name, base: now, wall: now.UnixMicro(), seed: maphash.MakeSeed(), stores: make(map[string]*Store)}
	for i := range sp.parts {
		sp.parts[i] = part{space: sp, shelves: make(map[string]*shelf), crowd: minCrowd}
	}
	return sp
}

// of returns the part of a key.
func (sp *space) of(key string) *part {
	return &sp.parts[maphash.String(sp.seed, key)%parts]
}

// momentLocked is the time. The mutex sees to it that no call on a key is earlier than the last.
func (p *part) momentLocked() book.Moment {
	now := time.Since(p.space.base)
	return book.Moment{Now: now, Wall: p.space.wall + now.Microseconds()}
}

// take returns the shelf of a key. Give the shelf back by put.
func (p *part) take(m book.Moment, key string) *shelf {
	sh := p.shelves[key]
	if sh == nil {
		sh = p.add(m, key)
	}
	sh.Floor = p.space.floor.Load()
	return sh
}

func (p *part) add(m book.Moment, key string) *shelf {
	if len(p.shelves) >= p.crowd {
		p.sweep(m.Now)
	}
	var sh *shelf
	if n := len(p.spare); n > 0 {
		sh, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		sh = new(shelf)
	}
	sh.key = key
	p.shelves[key] = sh
	return sh
}

// sweep deletes the keys whose claims have all expired. Sweeping only when the number of
// keys has doubled makes the cost per key small.
func (p *part) sweep(now time.Duration) {
	for key, sh := range p.shelves {
		if len(sh.watches) == 0 && sh.Empty(now) {
			delete(p.shelves, key)
		}
	}
	p.crowd = max(2*len(p.shelves), minCrowd)
}

// put records what a call has changed on a shelf. It adds to calls the watches to wake once
// mu is free. room says whether a claim has ended.
func (p *part) put(sh *shelf, room bool, calls []call) []call {
	p.space.raise(sh.Floor)
	if len(sh.watches) > 0 {
		return sh.wake(room, calls)
	}
	p.tidy(sh)
	return calls
}

// tidy deletes a key that nobody wants.
func (p *part) tidy(sh *shelf) {
	if len(sh.Held)+len(sh.Queue)+len(sh.Tombs)+len(sh.watches) > 0 {
		return
	}
	delete(p.shelves, sh.key)
	if len(p.spare) < maxSpare && cap(sh.Held)+cap(sh.Queue)+cap(sh.Tombs) <= maxRoom {
		sh.Phase, sh.key = 0, ""
		p.spare = append(p.spare, sh)
	}
}

// raise raises the floor. A request that begins later gets a larger token, whatever its key.
func (sp *space) raise(floor uint64) {
	for last := sp.floor.Load(); last < floor; last = sp.floor.Load() {
		if sp.floor.CompareAndSwap(last, floor) {
			return
		}
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

// store returns the open Store of a session, nil if there is none.
func (sp *space) store(session string) *Store {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.stores[session]
}

// leave ends the watches of a Store in the space. It returns the watches to wake, and
// whether the Store was the last one open.
func (sp *space) leave(s *Store) (calls []call, last bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if s.closed.Swap(true) {
		return nil, false
	}
	delete(sp.stores, s.session)
	for i := range sp.parts {
		calls = sp.parts[i].leave(s, calls)
	}
	return calls, len(sp.stores) == 0
}

// leave ends the watches of a Store, and adds them to calls.
func (p *part) leave(s *Store, calls []call) []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sh := range p.shelves {
		sh.watches = slices.DeleteFunc(sh.watches, func(w *watch) bool {
			if w.store == s {
				calls = append(calls, call{w.wake, driver.Grant{}})
			}
			return w.store == s
		})
		p.tidy(sh)
	}
	return calls
}
