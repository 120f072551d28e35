package sim

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/session"
)

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
	if p.dead = p.dead || lost || p.link.brokenSince(p.opened); p.dead {
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
		b.hearsLocked()
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
		token := b.tryLocked(name)
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
		err := b.freeLocked(name)
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

// Close implements [session.Conn]. Earlier requests arrive before the server hears of the
// end.
func (c *wire) Close(why error) {
	c.out.send("close", "", func() { c.session.end(why) })
	c.link.after(1, func() { c.lost(why) })
}
