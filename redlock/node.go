package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// reopening is how long a node that could not be opened is left alone.
const reopening = time.Second

// opener makes the store of a node.
type opener func(context.Context) (driver.Store, error)

// A node is one of the stores that make the majority.
//
// One that lets a call run into its limit is silent: until it answers again it
// gets one call at a time, and all others fail at once. So it keeps nobody
// waiting, and goroutines do not pile up in front of it. If there is no majority
// without the silent ones, it is rather this process that is slow, and all calls
// are made.
type node struct {
	redlock *Store
	index   int
	name    string
	open    opener // nil if it was given open

	mu      sync.Mutex
	inner   driver.Store  // nil until it is open
	unheard func()        // ends the notices
	opening chan struct{} // closed when a try to open it has ended, nil if there is none
	failure error         // of the last try
	retry   time.Time     // when to try again

	silent  bool
	probing bool

	records map[string]*record // by id
	crowd   int                // so many records, and it is time to sweep
	debts   []debt
	paying  bool
}

var (
	errSilent  = errors.New("has not answered lately")
	errOpening = errors.New("is being opened")
)

func (n *node) named(err error) error { return fmt.Errorf("%s: %w", n.name, err) }

// call makes one call to the node, with a context of Store.limit.
func (n *node) call(ctx context.Context, f func(driver.Store) error) error {
	probe, err := n.enter()
	if err != nil {
		return err
	}
	inner, err := n.reach(ctx)
	if err == nil {
		err = f(inner)
	}
	n.leave(probe, err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded))
	return err
}

// enter lets a call begin.
func (n *node) enter() (probe bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	few := int(n.redlock.silent.Load()) <= len(n.redlock.nodes)-n.redlock.majority()
	if n.silent && n.probing && few {
		return false, errSilent
	}
	probe = n.silent && !n.probing
	n.probing = n.silent
	return probe, nil
}

func (n *node) leave(probe, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if silent && !n.silent {
		n.redlock.silent.Add(1)
	} else if !silent && n.silent {
		n.redlock.silent.Add(-1)
	}
	n.silent = silent
	if probe {
		n.probing = false
	}
}

// reach returns the node's store, which is opened if it is not yet.
func (n *node) reach(ctx context.Context) (driver.Store, error) {
	n.mu.Lock()
	for n.opening != nil {
		opened := n.opening
		n.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, errOpening
		}
		n.mu.Lock()
	}
	if n.inner != nil || n.failure != nil && time.Now().Before(n.retry) {
		defer n.mu.Unlock()
		return n.inner, n.failure
	}
	opened := make(chan struct{})
	n.opening = opened
	n.mu.Unlock()
	inner, err := n.open(ctx)
	if err == nil {
		n.use(inner)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opening = nil
	close(opened)
	n.failure, n.retry = err, time.Now().Add(reopening)
	return inner, err
}

// use takes a store for the node's.
func (n *node) use(inner driver.Store) {
	unheard := func() {}
	if notifier, ok := inner.(driver.Notifier); ok {
		unheard = notifier.Notify(func(key, id string, err error) { n.redlock.told(n, key, id, err) })
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inner, n.unheard = inner, unheard
}

// opened reports whether the node has a store, and so may have claims of ours.
func (n *node) opened() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inner != nil
}

// close is called when no call goes on.
func (n *node) close() error {
	if !n.opened() {
		return nil
	}
	n.unheard()
	return n.inner.Close()
}

// serves says why a node's yes does not count: it may have forgotten a claim
// that still stands.
func (n *node) serves(ctx context.Context, inner driver.Store) error {
	ager, ok := inner.(driver.Ager)
	if !ok || n.redlock.quarantine == 0 {
		return nil
	}
	age, err := ager.Age(ctx)
	if err != nil {
		return fmt.Errorf("cannot tell since when it runs: %w", err)
	}
	if out := n.redlock.quarantine - age; out > 0 {
		return fmt.Errorf("has started %v ago and does not count for another %v, because it may have forgotten claims", age.Round(time.Millisecond), out.Round(time.Millisecond))
	}
	return nil
}

// An answer is what one node said.
type answer[T any] struct {
	*node
	value T
	err   error // it has not answered, or not to the point
}

// each calls f for nodes at the same time, which have so long for it, and returns
// the channel of their answers, which need not be read to the end.
func each[T any](s *Store, limit time.Duration, nodes []*node, f func(context.Context, *node) (T, error)) <-chan answer[T] {
	answers := make(chan answer[T], len(nodes))
	ctx, end := s.limit(limit, len(nodes))
	for _, n := range nodes {
		began := s.spawn(func() {
			defer end()
			value, err := f(ctx, n)
			answers <- answer[T]{n, value, err}
		})
		if !began {
			answers <- answer[T]{node: n, err: errClosed}
			end()
		}
	}
	return answers
}

// grace ends after as long again as it took a majority to answer: most of the
// other nodes will have answered by then, and nobody waits long for one that
// does not.
func grace(began time.Time, least time.Duration) <-chan time.Time {
	return time.After(max(time.Since(began), least))
}
