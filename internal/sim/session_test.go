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
	manner: []func(time.Duration) Faults{quiet, quiet, slow, breaking},
	cuts:   3,
	crowds: []int{1, 1, 2, 3},
}

// TestSessions runs package internal/session over a database whose locks end with the
// session: connections break, are cut in one way or both, and the server ends sessions that
// are silent, some of them late.
func TestSessions(t *testing.T) { worlds.Run(t, 0.1, sessions.explore) }

// breaking is a manner of links on which connections break. Whatever is lost of a stream,
// nothing arrives after it.
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
func (d *database) fail(r *rand.Rand, ttl time.Duration) {
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

// hears takes note that the client is not silent. Call it with mu held.
func (b *backendProcess) hears() {
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

// try takes a lock; 0 is a refusal. Call it with mu held.
func (b *backendProcess) try(name string) uint64 {
	if b.d.locks[name] != nil {
		return 0
	}
	b.d.locks[name] = b
	b.d.token += span
	return b.d.token - span + 1
}

// free gives a lock back and tells those who watch. Call it with mu held.
func (b *backendProcess) free(name string) error {
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
			b.hears()
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

// A pipe is one way of a connection: the messages arrive in order, and nothing arrives
// after a lost message or a suspend. While the process is stopped, the messages wait at its
// end.
type pipe struct {
	link   *Link
	way    Way
	opened time.Duration

	mu      sync.Mutex
	dead    bool
	last    time.Time // when the last message arrives
	waiting []func()  // at the process, in order
}

// pass calls f once the process is not stopped, after the earlier calls.
func (p *pipe) pass(f func()) {
	p.mu.Lock()
	p.waiting = append(p.waiting, f)
	first := len(p.waiting) == 1
	p.mu.Unlock()
	if first {
		p.link.p.deliver(p.drain)
	}
}

// drain makes the waiting calls.
func (p *pipe) drain() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.mu.Unlock()
			return
		}
		f := p.waiting[0]
		p.mu.Unlock()
		f()
		p.mu.Lock()
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
	}
}

// send carries a message of the process to the server.
func (p *pipe) send(call, key string, deliver func()) {
	p.pass(func() { p.carry(call, key, deliver) })
}

// hear carries a message of the server to the process.
func (p *pipe) hear(call, key string, deliver func()) {
	p.carry(call, key, func() { p.pass(deliver) })
}

// carry delivers a message.
func (p *pipe) carry(call, key string, deliver func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.link.fate(call, key)
	lost, held := p.link.blocked(p.way)
	if p.way == Out {
		lost = lost || f.lost
	} else {
		lost = lost || f.unanswered
	}
	if p.dead = p.dead || lost || p.link.since(p.opened); p.dead {
		p.link.event(Event{Step: Fault, Call: call, Key: key}, "lost")
		return
	}
	at := time.Now().Add(max(held+f.there, 1))
	if !at.After(p.last) {
		at = p.last.Add(1)
	}
	p.last = at
	p.link.after(time.Until(at), deliver)
}

// A wire is a session as its client has it.
type wire struct {
	link      *Link
	events    session.Events
	out, back *pipe
	session   *backendProcess

	mu    sync.Mutex
	asked []func(error) // what has no answer yet, in order
	over  bool
}

var _ session.Pusher = (*wire)(nil)

// ask sends a request. do runs at the server with its mutex held, and returns what to do
// with the answer; failed takes the error of a request without one.
func (c *wire) ask(call, name string, do func(b *backendProcess) func(), failed func(error)) {
	note := func(s Step, outcome any) {
		c.link.event(Event{Step: s, Call: call, Key: name}, outcome)
	}
	c.mu.Lock()
	over := c.over
	if !over {
		c.asked = append(c.asked, failed)
	}
	c.mu.Unlock()
	if over {
		go failed(errReset)
		return
	}
	c.link.p.w.Count.add(&c.link.p.w.Count.Calls)
	note(Sent, nil)
	if f := c.link.fate(call, name); f.reset || f.refused {
		// The client hears that the connection broke; the server may not.
		c.link.after(f.again+1, func() { c.link.p.deliver(func() { c.lost(errReset) }) })
	}
	c.out.send(call, name, func() {
		b := c.session
		b.d.mu.Lock()
		defer b.d.mu.Unlock()
		if b.ended {
			return
		}
		answer := do(b)
		b.hears()
		note(Arrive, nil)
		c.back.hear(call, name, func() {
			c.mu.Lock()
			if c.over {
				c.mu.Unlock()
				return
			}
			c.asked = c.asked[1:]
			c.mu.Unlock()
			note(Answer, nil)
			answer()
		})
	})
}

// lost ends the session for the client.
func (c *wire) lost(why error) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over = true
	asked := c.asked
	c.asked = nil
	c.mu.Unlock()
	c.link.event(Event{Step: Lost, Call: "session"}, why)
	for _, failed := range asked {
		failed(why)
	}
	c.events.Lost(why)
}

// free tells of a lock that was freed.
func (c *wire) free(name string) {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if !over {
		c.events.Free(name)
	}
}

// Ping implements [session.Conn].
func (c *wire) Ping(limit time.Duration, done func(error)) {
	c.ask("ping", "", func(b *backendProcess) func() {
		b.limit = limit
		return func() {
			done(nil)
			c.link.granted("ping")
		}
	}, done)
}

// Try implements [session.Conn].
func (c *wire) Try(name string, _ bool, done func(uint64, error)) {
	c.ask("try", name, func(b *backendProcess) func() {
		token := b.try(name)
		return func() {
			done(token, nil)
			if token > 0 {
				c.link.granted(name)
			}
		}
	}, func(err error) { done(0, err) })
}

// Free implements [session.Conn].
func (c *wire) Free(name string, done func(error)) {
	c.ask("free", name, func(b *backendProcess) func() {
		err := b.free(name)
		return func() { done(err) }
	}, done)
}

// Watch implements [session.Pusher].
func (c *wire) Watch(name string, done func(error)) {
	c.ask("watch", name, func(b *backendProcess) func() {
		b.watched[name]++
		return func() { done(nil) }
	}, done)
}

// Unwatch implements [session.Pusher].
func (c *wire) Unwatch(name string) {
	c.ask("unwatch", name, func(b *backendProcess) func() {
		b.watched[name]--
		return func() {}
	}, func(error) {})
}

// Help implements [session.Conn].
func (c *wire) Help(<-chan struct{}) {}

// Close implements [session.Conn]. What was sent before arrives before the server hears of
// the end.
func (c *wire) Close(why error) {
	c.out.send("close", "", func() { c.session.end(why) })
	c.link.after(1, func() { c.lost(why) })
}
