package pglock

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// A wire is a connection on which many callers have requests under way. Each
// request is a transaction of its own. What pgx offers is for one caller at a
// time, who would wait for the others' answers, and notices the end of an idle
// connection only when it is used next.
//
// One goroutine reads at a time. While the connection is idle that is one of the
// wire's own, which so hears at once of notifications and of the end. A caller
// that waits for an answer may read instead, see help: to be woken by another
// goroutine takes about as long as the server takes to answer.
type wire struct {
	conn   net.Conn
	events wireEvents

	mu      sync.Mutex
	out     []byte // to be written
	writing bool   // by the wire's own goroutine
	asked   []reply
	err     error         // why the connection ends or has ended
	more    chan struct{} // there is something to write
	ended   chan struct{}

	reading bool          // somebody does
	leads   uint64        // how often a caller has begun to
	turn    chan struct{} // the wire's own goroutine is to read
	reader  reader        // belongs to who reads
}

// A reply takes the first column of the row that a request was answered with,
// nil if that is NULL or there was no row. It keeps nothing of it.
type reply func(value []byte, err error)

// wireEvents are what a wire tells by itself.
type wireEvents struct {
	notified func(pid uint32, payload string)
	lost     func(err error) // after the last reply
}

// A reader is what has been read of the next answer.
type reader struct {
	front  *pgproto3.Frontend
	row    []byte // not nil, as an empty value is not NULL
	some   bool   // there is a row, and its first column is not NULL
	failed error
}

const (
	// direct is how many requests callers write themselves before those are
	// answered. So many fit into the buffers of a socket whose other end is gone,
	// so that no caller is held up. More are written together, by the wire.
	direct = 16

	// linger is how long an idle connection is left to the next caller to read,
	// and about how long one does before it leaves that to the wire.
	linger = time.Millisecond

	// farewell bounds what is still written when a connection is closed.
	farewell = time.Second
)

// newWire takes over a connection that is idle.
func newWire(conn net.Conn, front *pgproto3.Frontend, events wireEvents) *wire {
	w := &wire{
		conn: conn, events: events, reader: reader{front: front, row: []byte{}},
		more: make(chan struct{}, 1), turn: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go w.write()
	go w.read()
	return w
}

// send sends a request: a prepared statement and its parameters, each 8 bytes
// or text as the statement takes it, or no statement, which only asks for an
// answer. It never waits.
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
		// Nothing here is as large as to fail.
		w.out, _ = bind.Encode(w.out)
		w.out, _ = (&pgproto3.Execute{}).Encode(w.out)
	}
	w.out, _ = (&pgproto3.Sync{}).Encode(w.out)
	w.asked = append(w.asked, done)
	if w.writing || len(w.asked) > direct {
		w.nudge()
		return
	}
	if _, err := w.conn.Write(w.out); err != nil {
		w.conn.Close() // Who reads learns of it.
	}
	w.out = w.out[:0]
}

var binaryFormat = []int16{pgx.BinaryFormatCode}

func (w *wire) nudge() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// close ends the connection once what was sent is written. It does not wait.
func (w *wire) close(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.err = why
	w.out, _ = (&pgproto3.Terminate{}).Encode(w.out)
	_ = w.conn.SetWriteDeadline(time.Now().Add(farewell)) // If it fails, so does the write.
	w.nudge()
}

// write writes what callers do not.
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
		batch, last := w.out, w.err != nil
		w.out, w.writing = spare[:0], true
		w.mu.Unlock()
		if _, err := w.conn.Write(batch); err != nil || last {
			return
		}
		spare = batch
		w.mu.Lock()
		w.writing = false
		if len(w.out) > 0 {
			w.nudge()
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
		case <-w.turn:
		case <-w.ended:
			return
		}
		for reads := w.overlook(&seen); reads; {
			answered, err := w.receive()
			if err != nil {
				w.end(err)
				return
			}
			if answered {
				w.follow()
				reads = false
			}
		}
		tick.Reset(linger)
	}
}

// overlook reports whether the wire is to read from now on: if there are answers
// to come, or no caller has begun to read since it looked last. One who reads all
// that time is interrupted, so that it can look after its context.
func (w *wire) overlook(seen *uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	quiet := w.leads == *seen
	*seen = w.leads
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

// help reads, unless somebody does, until the channel is closed or it takes long.
func (w *wire) help(until <-chan struct{}) {
	if !w.lead() {
		return
	}
	for {
		select {
		case <-until:
			w.follow()
			return
		default:
		}
		if _, err := w.receive(); errors.Is(err, os.ErrDeadlineExceeded) {
			w.follow()
			return
		} else if err != nil {
			w.end(err)
			return
		}
	}
}

// lead reports whether the caller is to read from now on.
func (w *wire) lead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reading {
		return false
	}
	w.reading = true
	w.leads++
	return true
}

// follow leaves the reading to others: to the wire if there are answers to come,
// otherwise to the next caller if that comes soon.
func (w *wire) follow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = false
	if len(w.asked) > 0 {
		select {
		case w.turn <- struct{}{}:
		default:
		}
	}
}

// receive reads one message. It reports whether that ended an answer, which the
// one who asked then has.
func (w *wire) receive() (answered bool, err error) {
	r := &w.reader
	message, err := r.front.Receive()
	if err != nil {
		if r.failed != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			err = r.failed // the server's last words
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

// next returns who is answered next.
func (w *wire) next() reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := w.asked[0]
	w.asked = w.asked[1:]
	return done
}

// end tells all who have no answer why they get none.
func (w *wire) end(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
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
