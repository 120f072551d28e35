package zoo

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Numbers of messages that are not answers.
const (
	xidEvent = -1
	xidAuth  = -4
)

const nodeDeleted = 2 // kind of event

// maxMessage limits a message of a server. The largest message that a server has cause to
// send is a list of a million keys.
const maxMessage = 1 << 28

// A conn is a connection of a session.
type conn struct {
	net.Conn
	in      *bufio.Reader
	changed func(path string, deleted bool)

	mu      sync.Mutex
	xid     int32
	out     []byte  // to be sent
	pending []*Call // to be answered, in this order
	err     error   // why the connection has ended
	more    chan struct{}

	seen  int64   // number of the last transaction in an answer
	syncs []proof // answered syncs, as far as they still matter
	heard time.Duration

	ended chan struct{} // closed when the connection has ended, and nothing is read any more
}

func newConn(c net.Conn, changed func(path string, deleted bool)) *conn {
	return &conn{
		Conn: c, in: bufio.NewReaderSize(c, 16<<10), changed: changed,
		more: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// start begins to send and to receive.
func (c *conn) start() {
	var both sync.WaitGroup
	both.Go(func() { c.fail(c.receive()) })
	both.Go(c.send)
	go func() {
		both.Wait()
		close(c.ended)
	}()
}

// fail ends the connection.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	pending := c.pending
	c.pending = nil
	close(c.more)
	c.mu.Unlock()
	_ = c.Close() // already over
	for _, call := range pending {
		call.finish(nil, fmt.Errorf("%w: %w", ErrUnknown, err))
	}
}

// over reports whether the connection has ended.
func (c *conn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// queue sends requests, in this order and with no other requests between. queue reports
// false if the connection has ended.
func (c *conn) queue(calls []*Call, requests []Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	w := writer{c.out}
	for i, r := range requests {
		if c.xid++; c.xid < 0 { // numbers below zero are special
			c.xid = 1
		}
		calls[i].xid = c.xid
		w.int(int32(8 + len(r.body)))
		w.int(c.xid)
		w.int(r.op)
		w.buf = append(w.buf, r.body...)
	}
	c.out = w.buf
	c.pending = append(c.pending, calls...)
	select {
	case c.more <- struct{}{}:
	default:
	}
	return true
}

// send writes all queued messages at once.
func (c *conn) send() {
	var spare []byte
	for range c.more {
		c.mu.Lock()
		out := c.out
		c.out = spare[:0]
		c.mu.Unlock()
		if _, err := c.Write(out); err != nil {
			c.fail(err)
		}
		spare = out
	}
}

// receive reads until the connection ends.
func (c *conn) receive() error {
	for {
		message, err := c.read(maxMessage)
		if err != nil {
			return err
		}
		r := reader{buf: message}
		xid, zxid, code := r.int(), r.long(), r.int()
		switch {
		case r.short:
			return errForeign
		case xid == xidEvent:
			event := r.int()
			r.int() // the state of the session, already known
			c.changed(r.text(), event == nodeDeleted)
		default:
			if err := c.answer(xid, zxid, code, r.buf); err != nil {
				return err
			}
		}
	}
}

func (c *conn) answer(xid int32, zxid int64, code int32, reply []byte) error {
	c.mu.Lock()
	if len(c.pending) == 0 || c.pending[0].xid != xid {
		c.mu.Unlock()
		return fmt.Errorf("an answer with the number %d, which is not the next", xid)
	}
	call := c.pending[0]
	if code == 0 && !call.complete(reply) {
		c.mu.Unlock()
		return errForeign // the call is not answered
	}
	c.pending[0] = nil
	c.pending = c.pending[1:]
	c.seen = max(c.seen, zxid)
	c.mu.Unlock()
	var err error
	if code != 0 {
		err = Code(code)
	}
	call.finish(reply, err)
	return nil
}

// errForeign is the error of a server with another protocol.
var errForeign = errors.New("what answers there is no ZooKeeper")

var errNone = errors.New("the server opens no session")

// step is how much memory is allocated at once for a message that has not arrived yet.
const step = 1 << 20

func (c *conn) read(most uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > most {
		return nil, errForeign
	}
	var message []byte
	for left := int(n); left > 0; {
		some := min(left, step)
		left -= some
		message = append(message, make([]byte, some)...)
		if _, err := io.ReadFull(c.in, message[len(message)-some:]); err != nil {
			return nil, err
		}
	}
	return message, nil
}

func (c *conn) write(w writer) error {
	message := binary.BigEndian.AppendUint32(nil, uint32(len(w.buf)))
	_, err := c.Write(append(message, w.buf...))
	return err
}

// A greeting holds the terms between client and server.
type greeting struct {
	timeout  time.Duration
	id       int64
	password string
}

// nobody is the password that opens a session.
var nobody = string(make([]byte, 16))

// greet opens the session, or resumes a session with an id. seen keeps the client away from
// servers that lag behind the transactions that this client has seen.
func (c *conn) greet(ctx context.Context, g greeting, seen int64, auth []Auth) (greeting, error) {
	before := g
	if limit, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(limit); err != nil {
			return greeting{}, err
		}
	}
	var w writer
	w.int(0) // version
	w.long(seen)
	w.int(int32(g.timeout.Milliseconds()))
	w.long(g.id)
	w.text(g.password)
	w.bool(false) // not from servers that have lost the ensemble
	if err := c.write(w); err != nil {
		return greeting{}, err
	}
	message, err := c.read(1 << 10)
	if err != nil {
		return greeting{}, err
	}
	r := reader{buf: message}
	r.int()
	g.timeout = time.Duration(r.int()) * time.Millisecond
	g.id = r.long()
	g.password = r.text()
	switch {
	case r.short || len(r.buf) > 1:
		return greeting{}, errForeign
	case before.id == 0 && (g.timeout <= 0 || g.id == 0):
		return greeting{}, errNone
	case g.timeout <= 0 || g.id == 0:
		return greeting{}, Expired
	case before.id != 0 && (g.id != before.id || g.timeout != before.timeout):
		return greeting{}, errAltered // the session no longer lasts for the promised time
	}
	for _, a := range auth {
		if err := c.prove(a); err != nil {
			return greeting{}, err
		}
	}
	c.seen = seen
	return g, c.SetDeadline(time.Time{})
}

// prove authenticates this client to the server.
func (c *conn) prove(a Auth) error {
	var w writer
	w.int(xidAuth)
	w.int(opAuth)
	w.int(0)
	w.text(a.Scheme)
	w.text(a.Secret)
	if err := c.write(w); err != nil {
		return err
	}
	message, err := c.read(1 << 10)
	if err != nil {
		return err
	}
	r := reader{buf: message}
	xid, _, code := r.int(), r.long(), r.int()
	switch {
	case r.short || xid != xidAuth:
		return errForeign
	case code != 0:
		return Code(code)
	}
	return nil
}
