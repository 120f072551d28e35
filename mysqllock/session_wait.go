package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/doorbell"
	"github.com/holdfast-go/holdfast/internal/rest"
)

// sessionWaits wakes the waiters of a session. Connections beside that of the session wait in
// GET_LOCK. A connection first waits for the turn of a lock, and then for its door, which it lets go
// of within the same statement. So of all waiters of a lock one is woken, in the order in which the
// server grants the turn. A wake-up is a hint: the session then tries the lock.
type sessionWaits struct {
	server *sessionServer
	free   func(name string) // see session.Events
	life   context.Context   // of the session
	all    sync.WaitGroup

	mu      sync.Mutex
	wanted  map[string]*wantedLock
	queue   []string // of locks without a worker
	workers int
	conns   []int64       // of workers, by the number that the server gave
	idle    chan struct{} // a queued lock for a worker without one
	looking bool
	closed  bool
}

// A wantedLock is a lock with a watch or a worker.
type wantedLock struct {
	watches int
	served  bool            // by a worker
	queued  bool            // in sessionWaits.queue
	gone    context.Context // ends with the last watch, and with the session
	end     context.CancelFunc
}

const (
	waitLimit  = 3 * time.Second       // to connect, and for a wait of one second in the server
	workerIdle = 30 * time.Second      // a worker without a lock then closes its connection
	lookPause  = 50 * time.Millisecond // between two tries of a lock without a worker
	firstPause = 5 * time.Millisecond  // after a wake-up, for the session to try the lock
	lastPause  = 160 * time.Millisecond
)

// The server ends the connection of a worker after so many seconds of silence. With a turn, a
// worker is silent for lastPause at most; without a lock, for workerIdle.
const (
	turnSilence = 3
	idleSilence = 60
)

func newSessionWaits(life context.Context, server *sessionServer, free func(name string)) *sessionWaits {
	return &sessionWaits{server: server, free: free, life: life, wanted: make(map[string]*wantedLock), idle: make(chan struct{}, doorbell.MaxWaits)}
}

// watch begins to wait for a lock. Watches are counted.
func (w *sessionWaits) watch(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.wanted[name]
	if l == nil {
		l = new(wantedLock)
		w.wanted[name] = l
	}
	if l.watches++; l.watches == 1 {
		l.gone, l.end = context.WithCancel(w.life)
	}
	w.enqueueLocked(name, l)
}

// unwatch ends a watch.
func (w *sessionWaits) unwatch(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.wanted[name]
	if l.watches--; l.watches == 0 {
		l.end()
		w.forgetLocked(name, l)
	}
}

func (w *sessionWaits) forgetLocked(name string, l *wantedLock) {
	if l.served {
		return
	}
	delete(w.wanted, name)
	if l.queued {
		w.queue = slices.DeleteFunc(w.queue, func(other string) bool { return other == name })
	}
}

// enqueueLocked looks for a worker that waits for a lock.
func (w *sessionWaits) enqueueLocked(name string, l *wantedLock) {
	if l.served || l.queued || w.closed {
		return
	}
	l.queued = true
	w.queue = append(w.queue, name)
	select {
	case w.idle <- struct{}{}:
	default:
	}
	if !w.server.polls && w.workers < doorbell.MaxWaits {
		w.workers++
		w.all.Go(w.work)
	} else if !w.looking {
		w.looking = true
		w.all.Go(w.look)
	}
}

// look wakes the waiters whose locks have no worker, so that they poll.
func (w *sessionWaits) look() {
	for rest.For(w.life, lookPause) == nil {
		w.mu.Lock()
		names := slices.Clone(w.queue)
		w.looking = len(names) > 0
		w.mu.Unlock()
		if len(names) == 0 {
			return
		}
		for _, name := range names {
			w.free(name)
		}
	}
}

// work waits for one lock after the other. Locks that are not released take turns.
func (w *sessionWaits) work() {
	var c *conn
	var id int64
	hangUp := func() {
		if c != nil {
			w.forgetConn(id)
			_ = c.Close()
			c = nil
		}
	}
	defer hangUp()
	for {
		name, gone, ok := w.next()
		if !ok {
			return
		}
		var err error
		if c == nil {
			c, id, err = w.dial()
		}
		if err == nil {
			err = w.serve(c, name, gone)
		}
		if w.life.Err() != nil {
			return
		}
		if err != nil {
			hangUp() // A new connection follows.
			w.poll(name)
		}
		w.served(name)
	}
}

func (w *sessionWaits) dial() (c *conn, id int64, err error) {
	ctx, cancel := context.WithTimeout(w.life, waitLimit)
	defer cancel()
	if c, err = w.server.dial(ctx, "", nil); err != nil {
		return nil, 0, err
	}
	if err := c.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		return nil, 0, errors.Join(err, c.Close())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, id)
	return c, id, nil
}

func (w *sessionWaits) forgetConn(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = slices.DeleteFunc(w.conns, func(other int64) bool { return other == id })
}

// own reports whether a connection is that of a worker.
func (w *sessionWaits) own(id int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.conns, id)
}

// serve waits for a turn, and for the door. It returns when the last watch has ended, when it has
// waited for a second in vain while other locks have no worker, or after an error.
func (w *sessionWaits) serve(c *conn, name string, gone context.Context) error {
	// A turn ends with its connection, so the connection of a frozen process must end soon.
	got, err := w.query(c, fmt.Sprintf("SET @turn = GET_LOCK('%s', 1); SET SESSION wait_timeout = IF(@turn = 1, %d, %d);",
		turn(name), turnSilence, idleSilence), "@turn")
	if err != nil || !got {
		return err
	}
	for pause := firstPause; ; {
		began := time.Now()
		rang, err := w.query(c, "", "GET_LOCK('"+door(name)+"', 1) = 1 AND RELEASE_LOCK('"+door(name)+"')")
		if err != nil {
			return err
		}
		if time.Since(began) >= firstPause {
			pause = firstPause
		}
		if rang {
			w.free(name)
			// A lock that stays free is one that the session leaves to others for now.
			_ = rest.For(gone, pause)
			pause = min(2*pause, lastPause)
		}
		if gone.Err() != nil || !rang && w.crowded() {
			break
		}
	}
	_, err = w.query(c, fmt.Sprintf("SET SESSION wait_timeout = %d;", idleSilence), "RELEASE_LOCK('"+turn(name)+"')")
	return err
}

// query returns the value of an expression, after other statements of the same round trip.
func (w *sessionWaits) query(c *conn, before, expression string) (yes bool, err error) {
	ctx, cancel := context.WithTimeout(w.life, waitLimit)
	defer cancel()
	err = c.QueryRowContext(ctx, before+" SELECT COALESCE("+expression+", 0)").Scan(&yes)
	return yes, err
}

// crowded reports whether a lock has no worker.
func (w *sessionWaits) crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

// poll wakes the waiters of a lock for a second without a connection.
func (w *sessionWaits) poll(name string) {
	for range time.Second / lookPause {
		if rest.For(w.life, lookPause) != nil {
			return
		}
		w.free(name)
	}
}

// next returns the next lock for a worker, and the end of its watches; false if the worker is to
// end.
func (w *sessionWaits) next() (name string, gone context.Context, ok bool) {
	timer := time.NewTimer(workerIdle)
	defer timer.Stop()
	for last := false; ; {
		w.mu.Lock()
		if len(w.queue) > 0 && !w.closed {
			name, w.queue = w.queue[0], w.queue[1:]
			l := w.wanted[name]
			l.queued, l.served = false, true
			gone = l.gone
			w.mu.Unlock()
			return name, gone, true
		}
		if last || w.life.Err() != nil {
			w.workers--
			w.mu.Unlock()
			return "", nil, false
		}
		w.mu.Unlock()
		select {
		case <-w.idle:
		case <-timer.C:
			last = true
		case <-w.life.Done():
		}
	}
}

// served ends the work for a lock. A lock that is still wanted queues again.
func (w *sessionWaits) served(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.wanted[name]
	l.served = false
	if l.watches == 0 {
		w.forgetLocked(name, l)
		return
	}
	w.enqueueLocked(name, l)
}

// close waits for the end of the workers, after the end of the session.
func (w *sessionWaits) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.all.Wait()
}
