package mysqllock

import (
	"cmp"
	"errors"
	"net"
	"sync"
)

// A pump is a connection that is read all the time, to notice its end at once. The client
// reads only while waiting for an answer.
type pump struct {
	net.Conn
	ending func(error) // called when the connection has ended, and before this side closes it

	mu     sync.Mutex
	filled sync.Cond
	buffer []byte // received and not yet read
	err    error  // why the reading has ended
}

func newPump(conn net.Conn, ending func(error)) *pump {
	p := &pump{Conn: conn, ending: ending}
	p.filled.L = &p.mu
	go p.run()
	return p
}

// run reads until the connection ends or is closed. It reads without waiting for the
// client: a server sends little unasked.
func (p *pump) run() {
	chunk := make([]byte, 4096)
	for {
		n, err := p.Conn.Read(chunk)
		p.mu.Lock()
		p.buffer, p.err = append(p.buffer, chunk[:n]...), err
		p.mu.Unlock()
		p.filled.Signal()
		if err != nil {
			p.ending(err)
			return
		}
	}
}

// errClosedByClient ends a session when the client has closed the connection after an error of
// its own. The error itself goes to the request.
var errClosedByClient = errors.New("the client has closed the connection")

// Close calls ending before the server can hear of the end.
func (p *pump) Close() error {
	p.mu.Lock()
	why := cmp.Or(p.err, errClosedByClient)
	p.mu.Unlock()
	p.ending(why)
	return p.Conn.Close()
}

// Read waits for data. The client sets no deadline.
func (p *pump) Read(to []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buffer) == 0 && p.err == nil {
		p.filled.Wait()
	}
	if len(p.buffer) == 0 {
		return 0, p.err
	}
	n := copy(to, p.buffer)
	p.buffer = p.buffer[n:]
	return n, nil
}
