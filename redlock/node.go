package redlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// reopening is how long a node that could not be opened is left alone.
const reopening = time.Second

// opener makes the store of a node.
type opener func(context.Context) (driver.Store, error)

// A node is one of the stores below a Store.
//
// A node that lets a call run into the call's limit is silent. Until it answers again, the
// node gets one call at a time, and further calls fail at once. So no caller waits for a
// silent node, and goroutines do not pile up. If there is no majority without the silent
// nodes, this process is probably slow, and all calls are made.
type node struct {
	redlock *Store
	index   int
	name    string
	open    opener // nil if the node was given open

	mu          sync.Mutex
	inner       driver.Store  // nil until the node is open
	stopNotices func()        // ends the notices
	opening     chan struct{} // closed when a try to open the node ends; nil without a try
	failure     error         // of the last try
	retry       time.Time     // when to try again

	silent  bool
	probing bool

	looked     time.Time // at the node's age
	counts     time.Time // from when on the node's yes counts, by the last look
	firstAsked time.Time // when the client first asked the node for a claim
	floor      uint64    // tokens below the floor may be too small, see least
	floorAsked time.Time // when the client asked the node for the floor

	records   map[string]*record // by id
	sweepAt   int                // the number of records at which old ones are deleted
	leftovers []release          // without an answer, oldest first
	cleaning  bool               // the cleaner runs
}

var (
	errSilent  = errors.New("has not answered lately")
	errOpening = errors.New("is being opened")
)

// named adds the node's name to an error. The node's calls have limits of their own.
func (n *node) named(err error) error { return fmt.Errorf("%s: %w", n.name, silence.Of(err, 0)) }

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

// reach returns the node's store, and opens the store first if need be.
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
		n.setStore(inner)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opening = nil
	close(opened)
	n.failure, n.retry = err, time.Now().Add(reopening)
	return inner, err
}

// setStore makes inner the store of the node.
func (n *node) setStore(inner driver.Store) {
	stopNotices := func() {}
	if notifier, ok := inner.(driver.Notifier); ok {
		stopNotices = notifier.Notify(func(key, id string, err error) { n.redlock.reported(n, key, id, err) })
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inner, n.stopNotices = inner, stopNotices
}

// opened reports whether the node has a store, and so may have claims of this Store.
func (n *node) opened() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inner != nil
}

// close is called when no call is under way.
func (n *node) close() error {
	if !n.opened() {
		return nil
	}
	n.stopNotices()
	return n.inner.Close()
}

// checkAge says why a node's yes does not count: the node may have forgotten a claim, though
// the claim still stands. It returns nil if the yes counts.
func (n *node) checkAge(ctx context.Context, inner driver.Store) error {
	ager, ok := inner.(driver.Ager)
	if !ok || n.redlock.quarantine == 0 {
		return nil
	}
	age, err := ager.Age(ctx)
	if err != nil {
		return fmt.Errorf("cannot tell since when it runs: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looked = time.Now()
	n.counts = n.looked.Add(n.redlock.quarantine - age)
	return n.quarantinedLocked()
}

// asked notes when the client first asks the node for a claim.
func (n *node) asked(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.firstAsked.IsZero() {
		n.firstAsked = now
	}
}

// least returns the smallest token with which the node's yes to a claim counts. Before the
// node counted, the node may have given too small a token: to the claim, or to a reader
// that the claim joins, and that stands for at most a TTL after that if nobody renews it. A
// token is too small if it is below the time from which the node counts, by the node's clock
// (see the package comment). To learn that time, least acquires a new token of the node,
// with a new key.
func (n *node) least(inner driver.Store, c driver.Claim) (uint64, error) {
	n.mu.Lock()
	floor, counts := n.floor, n.counts
	early := counts
	if c.Shared() {
		early = counts.Add(n.redlock.quarantine)
	}
	needless := !n.floorAsked.Before(counts) || !n.firstAsked.Before(early)
	n.mu.Unlock()
	if needless {
		return floor, nil
	}
	id := rand.Text()
	a := driver.Ask{
		Claim: driver.Claim{Key: "holdfast/redlock/" + id, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: c.TTL},
		Span:  1,
	}
	ctx, end := n.redlock.limit(nodeLimit, 1)
	defer end()
	sent := time.Now()
	g, err := inner.Acquire(ctx, a)
	if err == nil && !g.OK {
		err = errors.New("refused")
	}
	if err != nil { // The error is not about the caller's claim, so it matches nothing.
		return 0, fmt.Errorf("has given no token for the new key %s: %v", a.Key, err)
	}
	n.redlock.spawn(func() {
		ctx, end := n.redlock.limit(nodeLimit, 1)
		defer end()
		_ = inner.Release(ctx, []driver.Release{{Claim: a.Claim}}) // Without an answer the claim expires.
	})
	since := sent.Sub(counts)
	since -= since / 50 // Clocks differ in rate by two in a hundred at most.
	floor = g.Fence - min(g.Fence, uint64(since.Microseconds()))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.floorAsked.Before(sent) {
		n.floor, n.floorAsked = floor, sent
	}
	return floor, nil
}

// unseen reports whether the last look at the node's age is a second old, as a look may
// be a call to the node.
func (n *node) unseen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.looked) >= time.Second
}

// quarantinedLocked says for how long the node does not count yet, by the last look at its
// age.
func (n *node) quarantinedLocked() error {
	out := time.Until(n.counts)
	if out <= 0 {
		return nil
	}
	return &quarantineError{n.redlock.quarantine - out, out}
}

// blocked names the nodes that do not count yet, if the remaining nodes are no majority.
func (s *Store) blocked() error {
	e := &tooFewError{answered: len(s.nodes), nodes: len(s.nodes)}
	for _, n := range s.nodes {
		n.mu.Lock()
		err := n.quarantinedLocked()
		n.mu.Unlock()
		if err != nil {
			e.answered--
			e.errs = append(e.errs, n.named(err))
		}
	}
	if e.answered >= s.majority() {
		return nil
	}
	return e
}

// An answer is the answer of one node.
type answer[T any] struct {
	*node
	value T
	err   error // the node has not answered, or not to the point
}

// each calls f for all given nodes at once, with one limit, and returns the channel of the
// answers. The channel need not be read to the end.
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

// grace ends after as long again as a majority took to answer. Most of the remaining nodes
// will have answered by then, and no caller waits long for a node without an answer.
func grace(began time.Time, least time.Duration) <-chan time.Time {
	return time.After(max(time.Since(began), least))
}
