// Package doorbell wakes waiters by the named locks of a database server: GET_LOCK of MySQL, and
// sp_getapplock of SQL Server. See [sqlstore.Bell].
package doorbell

import (
	"context"
	"crypto/rand"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// MaxWaits is the number of connections of a process for waits for foreign bells.
// Further waiters poll.
const MaxWaits = 4

// Silence is how long a connection may be silent. The server may then end the connection.
const Silence = 2 * idle

const (
	limit     = 3 * time.Second         // to connect, and for a statement, with a second of waiting in the server
	pause     = time.Second             // between two attempts to get the bell, doubled after each
	pauses    = time.Minute             // at most
	closing   = 1500 * time.Millisecond // for statements that run to their end at Close
	ringAgain = 10 * time.Millisecond   // longer than the server needs to begin a wait
	idle      = 30 * time.Second        // of a connection, see database/sql
	lifetime  = 3 * time.Minute         // the same
)

// Locks are statements about a named lock of the connection. Each statement has the name of
// the lock as its only parameter, or as every ?. Each returns 1, or something else after a
// failure. Each waits for up to a second in the server.
type Locks struct {
	Hold    string // acquires the lock
	Ring    string // releases the lock, and acquires it after those that wait
	Held    string // whether the connection holds the lock
	Release string

	// Wait waits for the lock and releases it within the statement, so that no waiter keeps
	// the bell. The first two parameters are the name of a row and its version. Wait returns a
	// [sqlstore.Heard], and what the release returned.
	Wait string
}

// A Bell is a named lock, and wakes the waiters behind the claims of the process. A
// connection holds the lock. Further connections wait for the locks of foreign processes.
type Bell struct {
	db    *sql.DB
	locks Locks
	sever func()
	name  atomic.Pointer[string] // nil while the bell is not held

	start   sync.Once
	tried   chan struct{} // closed after the first attempt to get the lock
	ring    chan struct{} // a request to ring, of one place
	waits   chan struct{} // a place for each connection that waits
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	closed  sync.Once
}

var _ sqlstore.Bell = (*Bell)(nil)

// New returns a bell of db, which the bell closes. sever, unless nil, breaks the connections of
// db. It is for a client that would wait for its server for longer if a statement is interrupted
// than if the statement runs to its end. Close breaks the connections of statements that take too
// long.
func New(db *sql.DB, locks Locks, sever func()) *Bell {
	db.SetMaxOpenConns(MaxWaits + 1)
	db.SetMaxIdleConns(MaxWaits + 1)
	db.SetConnMaxIdleTime(idle)
	db.SetConnMaxLifetime(lifetime)
	b := &Bell{db: db, locks: locks, sever: sever, tried: make(chan struct{}), ring: make(chan struct{}, 1), waits: make(chan struct{}, MaxWaits)}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// To implements [sqlstore.Bell].
func (b *Bell) To() string {
	if name := b.name.Load(); name != nil {
		return *name
	}
	return ""
}

// Hang implements [sqlstore.Bell].
func (b *Bell) Hang(ctx context.Context, within time.Duration) {
	first := false
	b.start.Do(func() {
		first = true
		b.running.Go(b.run)
	})
	if !first {
		return
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-b.tried:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// run keeps the bell until Close. The connection of the bell is replaced every few minutes, as
// in a pool, so that the bell follows the server's address.
func (b *Bell) run() {
	tried := sync.OnceFunc(func() { close(b.tried) })
	defer tried()
	name := "holdfast bell " + rand.Text()
	for rest := pause; b.life.Err() == nil; {
		err := b.hold(name, func() {
			rest = pause
			tried()
		})
		b.name.Store(nil)
		tried()
		if err == nil {
			continue
		}
		// The server may not have noticed the end of the last connection.
		name = "holdfast bell " + rand.Text()
		select {
		case <-time.After(rest):
			rest = min(2*rest, pauses)
		case <-b.life.Done():
		}
	}
}

var errBellTaken = errors.New("the bell is held by a different connection")

// hold keeps the bell for the lifetime of a connection, and rings.
func (b *Bell) hold(name string, held func()) error {
	ctx, cancel := context.WithTimeout(b.life, limit)
	conn, err := b.db.Conn(ctx)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	// The connection has the lock as long as the connection is open: no connection with the lock goes back to the pool.
	defer conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	if err := b.gets(conn, b.locks.Hold, name); err != nil {
		return err
	}
	b.name.Store(&name)
	held()
	old := time.NewTimer(lifetime)
	defer old.Stop()
	check := time.NewTicker(idle)
	defer check.Stop()
	var again <-chan time.Time
	for err == nil {
		select {
		case <-b.ring:
			err = b.gets(conn, b.locks.Ring, name)
			again = time.After(ringAgain)
		case <-again:
			// A waiter may have compared the row before the release, and begun to wait after
			// the ring.
			again = nil
			err = b.gets(conn, b.locks.Ring, name)
		case <-check.C:
			err = b.gets(conn, b.locks.Held, name)
		case <-old.C:
			return b.gets(conn, b.locks.Release, name)
		case <-b.life.Done():
			err = b.life.Err()
		}
	}
	return err
}

// bounded is the context of a statement.
func (b *Bell) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.sever != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// parameters are the parameters of a statement that ends with the name of a lock.
func parameters(query, lock string, first ...any) []any {
	args := first
	for range max(strings.Count(query, "?")-len(first), 1) {
		args = append(args, lock)
	}
	return args
}

// gets runs a query that has to return 1.
func (b *Bell) gets(conn *sql.Conn, query, lock string) error {
	ctx, cancel := b.bounded(b.life)
	defer cancel()
	var got sql.NullInt64
	err := conn.QueryRowContext(ctx, query, parameters(query, lock)...).Scan(&got)
	if err == nil && got.Int64 != 1 {
		err = errBellTaken
	}
	return err
}

// Ring implements [sqlstore.Bell].
func (b *Bell) Ring() {
	select {
	case b.ring <- struct{}{}:
	default: // A ring that has not begun serves this release, too.
	}
}

var errManyWaits = errors.New("as many connections as may wait for bells wait")

// Wait implements [sqlstore.Bell].
func (b *Bell) Wait(ctx context.Context, bell string, name any, version int64) (heard sqlstore.Heard, err error) {
	select {
	case b.waits <- struct{}{}:
	default:
		return 0, errManyWaits
	}
	defer func() { <-b.waits }()
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	var left sql.NullInt64 // of the lock, which the statement has released
	err = b.db.QueryRowContext(ctx, b.locks.Wait, parameters(b.locks.Wait, bell, name, version)...).Scan(&heard, &left)
	return heard, err
}

// Close implements [sqlstore.Bell].
func (b *Bell) Close() (err error) {
	b.closed.Do(func() {
		b.end()
		if b.sever != nil {
			late := time.AfterFunc(closing, b.sever)
			defer late.Stop()
		}
		b.start.Do(func() {})
		b.running.Wait()
		for range MaxWaits {
			b.waits <- struct{}{} // once the waits are over
		}
		err = b.db.Close()
	})
	return err
}
