package mysqllock

import (
	"net"
	"sync"
)

// A pump is a connection that is read all the time, so that its end is noticed
// at once. The client reads only while it waits for an answer.
type pump struct {
	net.Conn
	hungUp func(error)

	mu     sync.Mutex
	filled sync.Cond
	buffer []byte // what has come and was not read
	err    error  // why nothing more comes
}

func newPump(conn net.Conn, hungUp func(error)) *pump {
	p := &pump{Conn: conn, hungUp: hungUp}
	p.filled.L = &p.mu
	go p.run()
	return p
}

// run reads until the connection ends, as it does when it is closed. It goes on
// though nobody wants what has come: a server says little without being asked.
func (p *pump) run() {
	chunk := make([]byte, 4096)
	for {
		n, err := p.Conn.Read(chunk)
		p.mu.Lock()
		p.buffer, p.err = append(p.buffer, chunk[:n]...), err
		p.mu.Unlock()
		p.filled.Signal()
		if err != nil {
			p.hungUp(err)
			return
		}
	}
}

// Read waits for something to come. The client sets no deadline.
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
