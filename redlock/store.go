package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/callbacks"
)

const (
	// fewest is the smallest number of nodes that tolerates one failure.
	fewest = 3

	// defaultQuarantine is the engine's default TTL.
	defaultQuarantine = 15 * time.Second

	// nodeLimit is how long a node has to answer. The TTL of a claim does not matter: no
	// caller waits for a node unless there is no majority without the node.
	nodeLimit = 500 * time.Millisecond

	// closingGrace is how long Close lets background calls run.
	closingGrace = 100 * time.Millisecond
)

var errClosed = errors.New("redlock store is closed")

// Options are the settings of a Store. The zero value is a good one.
type Options struct {
	// Quarantine is how long a node that has restarted without its claims does not count
	// for a grant: at least the longest TTL in use, since a forgotten claim may stand for
	// as long. Claims with a longer TTL are [driver.ErrInvalid]. 0 means 15 s. A negative
	// value means no quarantine: then every node must keep its claims over a restart.
	Quarantine time.Duration

	// Names are the names of the nodes in errors, in order. A node without a name is
	// "node 1" and so on.
	Names []string

	// Clock returns the wall time, from which tokens are proposed. Default: time.Now.
	Clock func() time.Time
}

// A Store keeps claims on a majority of its nodes. Make one with New.
type Store struct {
	nodes      []*node
	quarantine time.Duration // 0: none
	clock      clock
	silent     atomic.Int32 // how many nodes are silent

	ctx    context.Context // of all calls to nodes
	cancel context.CancelFunc
	quit   chan struct{} // closed by Close
	busy   sync.WaitGroup

	notices callbacks.Losses

	mu      sync.Mutex
	closed  bool
	bids    map[string]chan struct{} // by id: a bid under way, closed when the bid ends
	watches map[string][]*watch      // by id
	losses  map[string]*loss         // by id
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a Store on the nodes: at least three nodes, better an odd number. The nodes
// must have nothing in common that can fail. Fewer than three nodes are [driver.ErrInvalid].
// Close closes the nodes.
func New(nodes []driver.Store, opts *Options) (*Store, error) {
	if len(nodes) < fewest {
		return nil, fmt.Errorf("%w: redlock has %d nodes (want %d or more)", driver.ErrInvalid, len(nodes), fewest)
	}
	if opts == nil {
		opts = &Options{}
	}
	s := newStore(opts.Quarantine)
	if opts.Clock != nil {
		s.clock.now = opts.Clock
	}
	for i, inner := range nodes {
		name := fmt.Sprint("node ", i+1)
		if i < len(opts.Names) {
			name = opts.Names[i]
		}
		s.add(name, nil).setStore(inner)
	}
	return s, nil
}

func newStore(quarantine time.Duration) *Store {
	if quarantine == 0 {
		quarantine = defaultQuarantine
	}
	s := &Store{
		quarantine: max(quarantine, 0),
		clock:      newClock(quarantine),
		quit:       make(chan struct{}),
		bids:       make(map[string]chan struct{}),
		watches:    make(map[string][]*watch),
		losses:     make(map[string]*loss),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// add makes a new node. If open is not nil, the node is opened when first needed.
func (s *Store) add(name string, open opener) *node {
	n := &node{redlock: s, index: len(s.nodes), name: name, open: open, records: make(map[string]*record)}
	s.nodes = append(s.nodes, n)
	return n
}

// majority is how many nodes have to agree.
func (s *Store) majority() int { return len(s.nodes)/2 + 1 }

// spawn runs f in a goroutine, and Close waits for the goroutine. After Close has begun,
// spawn runs nothing and returns false.
func (s *Store) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.busy.Go(f)
	return true
}

// limit returns the context of calls to nodes that begin now. The context ends with the
// last call; end is called once per call. The context is not derived from the caller's
// context, since a call continues if the caller need not wait for the node. One timer for all
// nodes is much cheaper than a timer per node.
func (s *Store) limit(d time.Duration, calls int) (ctx context.Context, end func()) {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	var open atomic.Int32
	open.Store(int32(calls))
	return ctx, func() {
		if open.Add(-1) == 0 {
			cancel()
		}
	}
}

// Close closes the nodes. Calls under way in the background have a tenth of a second to
// end. Claims are not released: they expire.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var watches []*watch
	for _, ws := range s.watches {
		watches = append(watches, ws...)
	}
	s.mu.Unlock()
	close(s.quit)
	for _, w := range watches {
		w.wake(driver.Grant{}) // The waiter asks, and learns of the end.
		w.stop()
	}
	grace := time.AfterFunc(closingGrace, s.cancel)
	s.busy.Wait()
	grace.Stop()
	s.cancel()
	// Close all nodes at once: a node that does not answer takes a while.
	errs := make([]error, len(s.nodes))
	var closing sync.WaitGroup
	for i, n := range s.nodes {
		closing.Go(func() {
			if err := n.close(); err != nil {
				errs[i] = n.named(err)
			}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

// admissible says why no majority can keep a claim. It returns nil if a majority can.
func (s *Store) admissible(c driver.Claim) error {
	if !c.Exclusive() && !(c.Shared() && c.Weight == 1) {
		return fmt.Errorf("%w: redlock has no slots, and upgrades no read lock, because a majority cannot count: of 2 slots, 3 claims can have 2 of 3 nodes each (want an exclusive claim or a reader)", driver.ErrInvalid)
	}
	return s.lasting(c)
}

// lasting says why no majority can keep the TTL of a claim. It returns nil if a majority
// can.
func (s *Store) lasting(c driver.Claim) error {
	if s.quarantine > 0 && c.TTL > s.quarantine {
		return fmt.Errorf("%w: its TTL of %v is longer than the quarantine of nodes that restart, %v (want a longer quarantine or a shorter TTL)", driver.ErrInvalid, c.TTL, s.quarantine)
	}
	return nil
}
