package sim

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/redlock"
)

var redlocks = &backend{
	make:    newCluster,
	ttls:    []time.Duration{time.Second, time.Second, 3 * time.Second},
	least:   holdfast.MinTTL,
	kinds:   []Kind{Exclusive, Exclusive, Shared},
	atLeast: 1, // The quarantine of a node covers no more.
	manner:  []func(time.Duration) Faults{quiet, quiet, quiet, quiet, lossy, slow, hostile},
	cuts:    1,
	crowds:  []int{1, 1, 2, 3},
}

// TestRedlock runs Redlock over nodes that are cut off one by one, restart without their
// claims, and whose clocks differ in rate and time.
func TestRedlock(t *testing.T) { worlds.Run(t, 0.1, 5, redlocks.explore) }

// A cluster is the nodes of a Redlock.
type cluster struct {
	w          *World
	nodes      []*node
	quarantine time.Duration
}

func newCluster(w *World) Store {
	r := w.Rand("cluster")
	c := &cluster{w: w}
	for i := range pick(r, 3, 3, 4, 5) {
		c.nodes = append(c.nodes, &node{
			w: w, name: fmt.Sprint("n", i+1), rate: 0.99 + 0.02*r.Float64(),
			inner: memlock.New(), born: time.Now().Add(-time.Hour),
		})
	}
	return c
}

// plan draws when nodes are down, and whether they come back without their claims. In half
// of the worlds one node restarts as another comes back from a cut: what was granted
// meanwhile is then known to few.
func (c *cluster) plan(ttl, length time.Duration) {
	r := c.w.Rand("nodes")
	c.quarantine = pick(r, ttl, 2*ttl)
	if r.IntN(2) == 0 {
		for at := upto(r, 2*ttl); at < length; at += c.quarantine + upto(r, 2*ttl) {
			order := r.Perm(len(c.nodes))
			back := at + ttl/2 + upto(r, ttl)
			c.nodes[order[0]].out(at, back, false)
			c.nodes[order[1]].out(back, back+upto(r, ttl/20), true)
			at = back
		}
		return
	}
	for _, n := range c.nodes {
		for range r.IntN(4) {
			at := upto(r, length)
			n.out(at, at+upto(r, 2*ttl), r.IntN(4) > 0)
		}
	}
}

// calm implements [calming]. Claims contend for the nodes first. With an even number of nodes
// two claims may have half of them each, and the one that gives way loses its place.
func (c *cluster) calm() (idle, place time.Duration) {
	const contested = 600 * time.Millisecond
	if len(c.nodes)%2 == 0 {
		return contested, 0
	}
	return contested, contested
}

// Connect implements [Store].
func (c *cluster) Connect(p *Process) driver.Store {
	var nodes []driver.Store
	for _, n := range c.nodes {
		l := p.Link(n.name)
		l.Plan = append(l.Plan, n.down...)
		nodes = append(nodes, n.behind(l))
	}
	// No clock may be ahead of that of a node by nine tenths of the quarantine.
	ahead := pick(p.w.Rand("clock", p.Name), 0, 0, 50*time.Millisecond, -time.Second, -time.Minute, c.quarantine/2)
	return must.Get(redlock.New(nodes, &redlock.Options{
		Quarantine: c.quarantine,
		Clock:      func() time.Time { return time.Now().Add(ahead) },
	}))
}

// Left implements [Store].
func (c *cluster) Left() (keys []string, err error) {
	for _, n := range c.nodes {
		for key, err := range n.Keys(context.Background(), "") {
			if err != nil {
				return nil, err
			}
			keys = append(keys, n.name+": "+key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Close implements [Store].
func (c *cluster) Close() error { return nil }

// A node is a server in memory, which forgets all that it was told when it restarts.
type node struct {
	w    *World
	name string
	rate float64 // seconds that its clock counts in one of the world
	down []Window

	mu      sync.Mutex
	inner   *memlock.Store
	born    time.Time
	watches []*watching
	notices []*listening
}

// A watching is a watch, which the client opens anew when its connection breaks.
type watching struct {
	claim driver.Claim
	wake  func(driver.Grant)
	stop  func()
}

// A listening is a subscription to losses, likewise.
type listening struct {
	lost func(key, id string, err error)
	stop func()
}

// out lets nobody reach the node for a while. The node may come back without its claims.
func (n *node) out(from, to time.Duration, restart bool) {
	n.down = append(n.down, Window{From: from, To: to, Way: Both})
	if restart {
		later(n.w, to, n.restart)
	}
}

// restart lets the node come back without its claims.
func (n *node) restart() {
	n.mu.Lock()
	n.w.Trace.add(Event{Routine: n.name, Step: Fault, Call: "restart"}, nil)
	n.w.Count.add(&n.w.Count.Failures)
	n.inner, n.born = memlock.New(), time.Now()
	watches := slices.Clone(n.watches)
	for _, w := range watches {
		w.stop()
		w.stop, _ = n.inner.Watch(context.Background(), w.claim, w.wake)
	}
	for _, o := range n.notices {
		o.stop()
		o.stop = n.inner.Notify(o.lost)
	}
	n.mu.Unlock()
	for _, w := range watches {
		w.wake(driver.Grant{})
	}
}

func (n *node) store() *memlock.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inner
}

// own is a TTL by the clock of the node, in the time of the world.
func (n *node) own(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl) / n.rate)
}

// Acquire implements [driver.Store].
func (n *node) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	ttl := a.TTL
	a.TTL = n.own(ttl)
	g, err := n.store().Acquire(ctx, a)
	if g.OK {
		g.TTL = ttl
	}
	return g, err
}

// Renew implements [driver.Store].
func (n *node) Renew(ctx context.Context, rs []driver.Renewal) []error {
	rs = slices.Clone(rs) // A message may arrive twice.
	for i := range rs {
		rs[i].TTL = n.own(rs[i].TTL)
	}
	return n.store().Renew(ctx, rs)
}

// Release implements [driver.Store].
func (n *node) Release(ctx context.Context, rs []driver.Release) []error {
	return n.store().Release(ctx, rs)
}

// Watch implements [driver.Watcher].
func (n *node) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &watching{claim: c, wake: wake}
	if w.stop, err = n.inner.Watch(ctx, c, wake); err != nil {
		return nil, err
	}
	n.watches = append(n.watches, w)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		w.stop()
		n.watches = slices.DeleteFunc(n.watches, func(o *watching) bool { return o == w })
	}, nil
}

// Notify implements [driver.Notifier].
func (n *node) Notify(lost func(key, id string, err error)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &listening{lost, n.inner.Notify(lost)}
	n.notices = append(n.notices, o)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		o.stop()
		n.notices = slices.DeleteFunc(n.notices, func(p *listening) bool { return p == o })
	}
}

// Holders implements [driver.Inspector].
func (n *node) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	return n.store().Holders(ctx, key)
}

// Keys implements [driver.Inspector].
func (n *node) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return n.store().Keys(ctx, prefix)
}

// Break implements [driver.Inspector].
func (n *node) Break(ctx context.Context, key, id string) error {
	return n.store().Break(ctx, key, id)
}

// Close implements [driver.Store]. The node goes on.
func (n *node) Close() error { return nil }

// age is by the clock of the node.
func (n *node) age() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(float64(time.Since(n.born)) * n.rate)
}

// behind returns the node as a process has it.
func (n *node) behind(l *Link) driver.Store {
	far := Over(l, n)
	return struct {
		driver.Store
		driver.Watcher
		driver.Notifier
		driver.Inspector
		driver.Ager
	}{far, far.(driver.Watcher), far.(driver.Notifier), far.(driver.Inspector), ager{l, n}}
}

// An ager asks a node how old it is.
type ager struct {
	link *Link
	node *node
}

// Age implements [driver.Ager].
func (a ager) Age(ctx context.Context) (time.Duration, error) {
	return Send(ctx, a.link, "age", "", "", a.node.age)
}
