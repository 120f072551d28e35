package servers

import (
	"errors"
	"net"
	"sync"
)

// A Proxy forwards TCP connections to a server, and disturbs the connections on request.
// Each direction is disturbed separately. All settings may change at any time, and apply
// to open connections too.
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
	done     sync.WaitGroup // a goroutine for the listener, and several for each link
}

// StartProxy starts a proxy in front of a server at the address target.
func StartProxy(tb TB, target string) *Proxy {
	tb.Helper()
	l := occupy(tb) // If released, the port could be tried by another caller for a moment.
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

// Open returns how many connections pass through the proxy now.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Refuse refuses new connections while on. Open connections stay.
func (p *Proxy) Refuse(on bool) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.listener != nil:
		deafen(p.listener)
		p.listener.Close()
		p.listener = nil
	case !on && p.listener == nil:
		// A process that is just being started has the old listener until the process
		// runs.
		Await(p.tb, "the port of a proxy", func() error {
			l, err := net.Listen("tcp", p.addr)
			if err == nil {
				p.serve(l)
			}
			return err
		})
	}
}

// Blackhole holds back both directions while on, as a network does that is cut. When
// Blackhole is switched off, the held data arrives, and so does the news that a side has
// ended the connection. New connections are still accepted.
func (p *Proxy) Blackhole(on bool) {
	if on {
		p.Requests.Hold(true)
		p.Replies.Hold(true)
		return
	}
	// The replies go first: replies to the requests released next are then never held
	// back.
	p.Replies.Hold(false)
	p.Requests.Hold(false)
}

// Reset breaks all open connections, on both sides.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Redirect makes target the server behind the proxy, and breaks the connections to the
// former server.
func (p *Proxy) Redirect(target string) {
	p.Lead(target)
	p.Reset()
}

// Lead makes target the server behind the proxy for new connections. Open connections stay
// with the former server, as after a change of the address of a name.
func (p *Proxy) Lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// serve accepts connections until l is closed. The caller holds the mutex, or is the only
// user.
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

// accept connects a client to the server, unless the proxy has begun to refuse
// connections.
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

// relay forwards data in both directions until both sides have ended or one side breaks
// off.
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
