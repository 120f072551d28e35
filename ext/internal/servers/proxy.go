package servers

import (
	"errors"
	"net"
	"sync"
)

// A Proxy passes TCP connections on to a server, and harms them as it is told.
// Each direction is harmed on its own; everything may change at any time, and
// counts for connections that are open already.
type Proxy struct {
	Requests *Direction // to the server
	Replies  *Direction // from the server

	tb   TB
	addr string

	mu       sync.Mutex
	target   string
	listener net.Listener // nil while new connections are refused
	links    map[*link]bool
	accepted int
	done     sync.WaitGroup // a goroutine for the listener, and some for each link
}

// StartProxy starts a proxy before a server at the address target.
func StartProxy(tb TB, target string) *Proxy {
	tb.Helper()
	l, err := occupy(tb) // Who looks for a port may try this one for a moment if it is let go.
	if err != nil {
		tb.Fatalf("start a proxy: %v", err)
	}
	p := &Proxy{
		tb:     tb,
		target: target,
		addr:   l.Addr().String(),
		links:  make(map[*link]bool),
	}
	p.Requests, p.Replies = newDirection(), newDirection()
	p.serve(l)
	tb.Cleanup(func() {
		p.Refuse(true)
		p.Reset()
		p.done.Wait()
	})
	return p
}

// Addr returns the host and port at which the proxy listens.
func (p *Proxy) Addr() string { return p.addr }

// Accepted returns how many connections were accepted so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Open returns how many connections pass through it now.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Refuse lets new connections be refused while on. Those that are open stay.
func (p *Proxy) Refuse(on bool) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.listener != nil:
		p.listener.Close()
		p.listener = nil
	case !on && p.listener == nil:
		// A process that is just being started has the old listener until it runs.
		mustAwait(p.tb, "the port of a proxy", func() error {
			l, err := net.Listen("tcp", p.addr)
			if err == nil {
				p.serve(l)
			}
			return err
		})
	}
}

// Blackhole holds both directions while on, as a network does that is cut: what
// is sent arrives when it is switched off, and so does the news that a side has
// ended the connection. New connections are still accepted.
func (p *Proxy) Blackhole(on bool) {
	if on {
		p.Requests.Hold(true)
		p.Replies.Hold(true)
		return
	}
	// Replies to what is let through now were never held back.
	p.Replies.Hold(false)
	p.Requests.Hold(false)
}

// Reset breaks all connections that are open, on both sides.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Redirect makes target the server behind the proxy, and breaks the connections
// to the one that was.
func (p *Proxy) Redirect(target string) {
	p.Lead(target)
	p.Reset()
}

// Lead makes target the server behind the proxy for new connections. Those that
// are open stay with the one that was, as after a change of a name's address.
func (p *Proxy) Lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// serve accepts connections until l is closed. The caller holds the mutex, or
// is alone.
func (p *Proxy) serve(l net.Listener) {
	p.listener = l
	p.done.Go(func() {
		for {
			client, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				p.accept(l, client.(*net.TCPConn))
			}
		}
	})
}

// accept joins a client to the server, unless connections are refused since.
func (p *Proxy) accept(from net.Listener, client *net.TCPConn) {
	l := newLink(client)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != from {
		l.reset()
		return
	}
	p.links[l] = true
	p.accepted++
	target := p.target
	p.done.Go(func() {
		p.relay(l, target)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}

// relay passes on what both sides say until both have ended or one breaks off.
func (p *Proxy) relay(l *link, target string) {
	if !l.dial(target) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.Requests.pass(l, l.client, l.server, p.Replies) })
	both.Go(func() { p.Replies.pass(l, l.server, l.client, p.Requests) })
	both.Wait()
	l.close()
}
