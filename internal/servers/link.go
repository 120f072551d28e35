package servers

import (
	"net"
	"sync"
)

// A link is the connection of one client through a proxy.
type link struct {
	client *net.TCPConn
	server *net.TCPConn // nil until dial

	mu    sync.Mutex
	ended chan struct{} // closed by close and reset
}

func newLink(client *net.TCPConn) *link {
	return &link{client: client, ended: make(chan struct{})}
}

// dial connects to the server, and reports whether the link stands. If the server refuses,
// dial closes the link with an error, as far as possible.
func (l *link) dial(target string) bool {
	server, err := net.DialTimeout("tcp", target, patience)
	if err != nil {
		l.reset()
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended: // while dialing
		server.Close()
		return false
	default:
		l.server = server.(*net.TCPConn)
		return true
	}
}

// close ends the link after all data has been forwarded.
func (l *link) close() { l.end(false) }

// reset breaks the link off, so that both sides see an error instead of an end.
func (l *link) reset() { l.end(true) }

func (l *link) end(abrupt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
		return
	default:
		close(l.ended)
	}
	for _, conn := range []*net.TCPConn{l.client, l.server} {
		if conn == nil {
			continue
		}
		if abrupt {
			conn.SetLinger(0)
		}
		conn.Close()
	}
}
