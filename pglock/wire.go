package pglock

import (
	"cmp"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// A wire is a connection on which many callers have requests under way. Each request is a
// transaction of its own. A connection of pgx is for one caller at a time: other callers
// would wait for that caller's answer. And pgx notices the end of an idle connection only
// at the next use.
//
// One goroutine reads at a time. While the connection is idle, the wire's own goroutine
// reads, and so receives notifications and the end at once. A caller that waits for an
// answer may read instead, see help: waking a goroutine takes about as long as the server
// takes to answer.
type wire struct {
	conn   net.Conn
	events wireEvents

	mu      sync.Mutex
	out     []byte // to be written
	writing bool   // by the wire's own goroutine
	asked   []reply
	err     error         // why the connection ends or has ended
	broken  error         // of a failed write
	more    chan struct{} // there is something to write
	ended   chan struct{}
	notify  sync.Once // events.ending

	reading  bool          // a goroutine reads
	reads    uint64        // how often a caller has begun to read
	readNext chan struct{} // the wire's own goroutine must read
	reader   reader        // belongs to the reading goroutine
}

// A reply takes the first column of the row that answers a request, nil if the value is
// NULL or there was no row. A reply must not keep the value.
type reply func(value []byte, err error)

// wireEvents are the callbacks of a wire that need no request.
type wireEvents struct {
	notified func(pid uint32, payload string)
	ending   func(err error) // before the connection is closed after an error
	lost     func(err error) // after the last reply
}

// A reader is the part of the next answer that has been read.
type reader struct {
	front  *pgproto3.Frontend
	row    []byte // not nil, as an empty value is not NULL
	some   bool   // there is a row, and its first column is not NULL
	failed error
}

const (
	// direct is how many requests callers write themselves while answers are due. That
	// many requests fit into the buffers of a socket whose other end is gone, so no
	// caller is blocked. The wire writes further requests together.
	direct = 16

	// idleWait is how long an idle connection is left for the next caller to read. After
	// about the same time, a reading caller leaves the connection to the wire.
	idleWait = time.Millisecond

	// lastWriteLimit bounds the last write when a connection is closed.
	lastWriteLimit = time.Second
)

// newWire takes over an idle connection.
func newWire(conn net.Conn, front *pgproto3.Frontend, events wireEvents) *wire {
	w := &wire{
		conn: conn, events: events, reader: reader{front: front, row: []byte{}},
		more: make(chan struct{}, 1), readNext: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go w.write()
	go w.read()
	return w
}

// send sends a request: a prepared statement and its parameters, each 8 bytes or text as
// the statement requires. Without a statement, the request only asks for an answer. send
// never waits.
func (w *wire) send(statement string, done reply, params ...[]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		err := w.err
		go done(nil, err)
		return
	}
	if statement != "" {
		bind := pgproto3.Bind{
			PreparedStatement: statement, Parameters: params,
			ParameterFormatCodes: binaryFormat, ResultFormatCodes: binaryFormat,
		}
		// Encoding fails only for larger messages.
		w.out, _ = bind.Encode(w.out)
		w.out, _ = (&pgproto3.Execute{}).Encode(w.out)
	}
	w.out, _ = (&pgproto3.Sync{}).Encode(w.out)
	w.asked = append(w.asked, done)
	if w.writing || w.broken != nil || len(w.asked) > direct {
		w.wakeWriter()
		return
	}
	if _, w.broken = w.conn.Write(w.out); w.broken != nil {
		w.wakeWriter() // A caller may have a mutex that the owner needs.
	}
	w.out = w.out[:0]
}

var binaryFormat = []int16{pgx.BinaryFormatCode}

func (w *wire) wakeWriter() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// close ends the connection once all requests are written. close does not wait.
func (w *wire) close(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.err = why
	w.out, _ = (&pgproto3.Terminate{}).Encode(w.out)
	_ = w.conn.SetWriteDeadline(time.Now().Add(lastWriteLimit)) // If it fails, so does the write.
	w.wakeWriter()
}

// fail ends the connection after an error.
func (w *wire) fail(err error) {
	w.ending(err)
	w.close(err)
}

// ending notifies the owner of the wire, unless the connection is ending already. If another goroutine
// is about to notify the owner, ending waits for it.
func (w *wire) ending(err error) {
	w.mu.Lock()
	over := w.err != nil
	w.mu.Unlock()
	if !over {
		w.notify.Do(func() { w.events.ending(err) })
	}
}

// write writes the requests that callers do not write themselves.
func (w *wire) write() {
	defer w.conn.Close()
	var spare []byte
	for {
		select {
		case <-w.more:
		case <-w.ended:
			return
		}
		w.mu.Lock()
		batch, last, err := w.out, w.err != nil, w.broken
		w.out, w.writing = spare[:0], true
		w.mu.Unlock()
		if err == nil {
			_, err = w.conn.Write(batch)
		}
		if err != nil {
			w.mu.Lock()
			w.broken = err
			w.mu.Unlock()
			w.ending(err)
		}
		if err != nil || last {
			return
		}
		spare = batch
		w.mu.Lock()
		w.writing = false
		if len(w.out) > 0 {
			w.wakeWriter()
		}
		w.mu.Unlock()
	}
}

// read reads while no caller does, until the connection ends.
func (w *wire) read() {
	tick := time.NewTimer(0)
	defer tick.Stop()
	var seen uint64
	for {
		select {
		case <-tick.C:
		case <-w.readNext:
		case <-w.ended:
			return
		}
		for reading := w.takeOver(&seen); reading; {
			answered, err := w.receive()
			if err != nil {
				w.end(err)
				return
			}
			if answered {
				w.stopReading()
				reading = false
			}
		}
		tick.Reset(idleWait)
	}
}

// takeOver reports whether the wire must read from now on: if answers are due, or no caller
// has begun to read since the last look. A caller that has been reading since the last
// look is interrupted, so that the caller can check its context.
func (w *wire) takeOver(seen *uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	quiet := w.reads == *seen
	*seen = w.reads
	switch {
	case w.reading && quiet:
		_ = w.conn.SetReadDeadline(time.Unix(1, 0)) // If it fails, so does the read.
	case !w.reading && (quiet || len(w.asked) > 0):
		_ = w.conn.SetReadDeadline(time.Time{})
		w.reading = true
		return true
	}
	return false
}

// help reads, unless another goroutine reads, until the channel is closed or reading
// takes long.
func (w *wire) help(until <-chan struct{}) {
	if !w.startReading() {
		return
	}
	for {
		select {
		case <-until:
			w.stopReading()
			return
		default:
		}
		if _, err := w.receive(); errors.Is(err, os.ErrDeadlineExceeded) {
			w.stopReading()
			return
		} else if err != nil {
			w.end(err)
			return
		}
	}
}

// startReading reports whether the caller must read from now on.
func (w *wire) startReading() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reading {
		return false
	}
	w.reading = true
	w.reads++
	return true
}

// stopReading ends the caller's reading. If answers are due, the wire reads next; otherwise
// the next caller reads, if soon enough.
func (w *wire) stopReading() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = false
	if len(w.asked) > 0 {
		select {
		case w.readNext <- struct{}{}:
		default:
		}
	}
}

// receive reads one message. receive reports whether the message ended an answer, which
// the request's reply has then received.
func (w *wire) receive() (answered bool, err error) {
	r := &w.reader
	message, err := r.front.Receive()
	if err != nil {
		if r.failed != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			err = r.failed // the server's last error
		}
		return false, err
	}
	switch m := message.(type) {
	case *pgproto3.DataRow:
		r.some = m.Values[0] != nil
		r.row = append(r.row[:0], m.Values[0]...)
	case *pgproto3.ErrorResponse:
		r.failed = pgconn.ErrorResponseToPgError(m)
	case *pgproto3.NotificationResponse:
		w.events.notified(m.PID, m.Payload)
	case *pgproto3.ReadyForQuery:
		var value []byte
		if r.some {
			value = r.row
		}
		failed := r.failed
		r.some, r.failed = false, nil
		w.next()(value, failed)
		return true, nil
	}
	return false, nil
}

// next returns the reply that is due next.
func (w *wire) next() reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := w.asked[0]
	w.asked = w.asked[1:]
	return done
}

// end fails all unanswered requests with the reason.
func (w *wire) end(err error) {
	w.ending(err)
	w.conn.Close() // ends a write that hangs
	w.mu.Lock()
	if errors.Is(err, net.ErrClosed) {
		err = cmp.Or(w.broken, err) // The writer has closed the connection.
	}
	w.err = cmp.Or(w.err, err)
	err = w.err
	asked := w.asked
	w.asked = nil
	close(w.ended)
	w.mu.Unlock()
	for _, done := range asked {
		done(nil, err)
	}
	w.events.lost(err)
}
