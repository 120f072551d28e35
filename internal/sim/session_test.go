package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/session"
)

var sessions = &backend{
	make:   newDatabase,
	ttls:   []time.Duration{time.Second, 3 * time.Second, 15 * time.Second},
	least:  time.Second,
	kinds:  []Kind{Exclusive},
	manner: []func(time.Duration) Faults{quiet, quiet, stream(slow), breaking},
	cuts:   3,
	crowds: []int{1, 1, 2, 3},
}

// TestSessions runs package internal/session over a database whose locks end with the
// session: connections break, are cut in one way or both, and the server ends sessions that
// are silent, some of them late.
func TestSessions(t *testing.T) { worlds.Run(t, 0.1, 15, sessions.explore) }

// breaking is a manner of links on which connections break. After a lost part of a stream
// nothing more arrives.
func breaking(ttl time.Duration) Faults {
	return Faults{Request: 0.02, Reply: 0.02, Refuse: 0.02, Reset: 0.02, Wake: 0.1, Cut: 0.1, Delay: ttl / 12, Most: 2 * ttl, Start: ttl / 4}
}

// A database is a server whose locks end with the session that has them.
type database struct {
	w    *World
	rate float64       // seconds that its clock counts in one of the world
	lazy time.Duration // by how much it may be late to end a silent session

	mu       sync.Mutex
	token    uint64
	locks    map[string]*backendProcess // by name
	sessions []*backendProcess
}

// span is how many tokens come with a lock.
const span = 64

func newDatabase(w *World) Store {
	r := w.Rand("database")
	return &database{
		w: w, rate: pick(r, 0.99, 1.01, 0.99+0.02*r.Float64()), lazy: pick(r, 0, time.Second, time.Minute),
		token: uint64(time.Now().UnixMicro()), locks: make(map[string]*backendProcess),
	}
}

// plan takes note of how long locks may stand.
func (d *database) plan(ttl, _ time.Duration) { d.w.lasts(2*ttl + 2*d.lazy) }

// calm implements [calming]. All waiters are woken, and the first to ask gets the lock.
func (d *database) calm() (idle, place time.Duration) { return 100 * time.Millisecond, 0 }

// Connect implements [Store].
func (d *database) Connect(p *Process) driver.Store {
	terms := session.Terms{MinTTL: time.Second, MaxTTL: time.Hour, Span: span}
	return session.Watcher{Store: session.New(&dialer{d, p.Link("store"), boottime.Of(p.machine)}, terms)}
}

// Left implements [Store].
func (d *database) Left() (keys []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.locks {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// Close implements [Store].
func (d *database) Close() error { return nil }

// fail ends a session, or all of them as a restart of the server does. Their clients hear of
// it when others may have their locks already.
func (d *database) fail(r *rand.Rand, ttl time.Duration) bool {
	d.w.Judge.Forgot(ttl + time.Second)
	d.mu.Lock()
	ended := slices.Clone(d.sessions)
	d.mu.Unlock()
	if r.IntN(2) == 0 {
		ended = ended[:min(len(ended), 1)]
	}
	for _, b := range ended {
		b.end(errShutdown)
	}
	return len(ended) > 0
}

// A backendProcess is a session at the server.
type backendProcess struct {
	d       *database
	client  *wire
	limit   time.Duration
	spoke   func() // stops the timer that ends the session
	watched map[string]int
	ended   bool
}

// Why a server ends sessions.
var (
	errTerminated = errors.New("terminating connection due to idle-session timeout")
	errShutdown   = errors.New("terminating connection due to administrator command")
)

// hearsLocked takes note that the client is not silent.
func (b *backendProcess) hearsLocked() {
	b.spoke()
	r := b.d.w.rand(int64(b.d.w.Now()), "silent", b.client.link.p.Name)
	limit := time.Duration(float64(b.limit)/b.d.rate) + upto(r, b.d.lazy)
	b.spoke = later(b.d.w, limit, func() { b.end(errTerminated) })
}

// end ends a session, and with it its locks. The client hears of it if the network lets it.
func (b *backendProcess) end(why error) {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.ended {
		return
	}
	b.ended = true
	b.spoke()
	b.d.w.Trace.add(Event{Process: b.client.link.p.Name, Routine: b.client.link.name, Step: Fault, Call: "session ends"}, why)
	for name, holder := range b.d.locks {
		if holder == b {
			delete(b.d.locks, name)
		}
	}
	b.d.sessions = slices.DeleteFunc(b.d.sessions, func(o *backendProcess) bool { return o == b })
	b.client.back.hear("hangup", "", func() { b.client.lost(why) })
}

// tryLocked takes a lock; 0 is a refusal.
func (b *backendProcess) tryLocked(name string) uint64 {
	if b.d.locks[name] != nil {
		return 0
	}
	b.d.locks[name] = b
	b.d.token += span
	return b.d.token - span + 1
}

// freeLocked gives a lock back and tells those who watch.
func (b *backendProcess) freeLocked(name string) error {
	if b.d.locks[name] != b {
		return errors.New("you don't own a lock of this name")
	}
	delete(b.d.locks, name)
	for _, o := range b.d.sessions {
		if o != b && o.watched[name] > 0 {
			o.client.back.hear("notify", name, func() { o.client.free(name) })
		}
	}
	return nil
}

// A dialer opens sessions for a process.
type dialer struct {
	d     *database
	link  *Link
	clock *boottime.Clock
}

// Clock implements [boottime.Simulator].
func (o *dialer) Clock() *boottime.Clock { return o.clock }

// Name implements [session.Server].
func (*dialer) Name(key string) string { return key }

// Open implements [session.Server].
func (o *dialer) Open(ctx context.Context, _ string, limit time.Duration, events session.Events) (session.Conn, error) {
	c := &wire{link: o.link, events: events}
	now := o.d.w.Now()
	c.out, c.back = &pipe{link: o.link, way: Out, opened: now}, &pipe{link: o.link, way: Back, opened: now}
	b := &backendProcess{d: o.d, client: c, limit: limit, spoke: func() {}, watched: make(map[string]int)}
	_, err := Send(ctx, o.link, "open", "", "", func() bool {
		o.d.mu.Lock()
		defer o.d.mu.Unlock()
		if c.session == nil {
			c.session = b
			o.d.sessions = append(o.d.sessions, b)
			b.hearsLocked()
		}
		return true
	})
	if err != nil {
		c.mu.Lock()
		c.over = true // Nobody is told any more.
		c.mu.Unlock()
		return nil, err
	}
	return c, nil
}
