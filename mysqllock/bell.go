package mysqllock

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// maxWaits is the number of connections of a process for waits for foreign bells.
// Further waiters poll.
const maxWaits = 4

const (
	bellLimit  = 3 * time.Second       // to connect, and for a statement, with a second of waiting in the server
	bellPause  = time.Second           // between two attempts to get the bell, doubled after each
	bellPauses = time.Minute           // at most
	bellSilent = 2 * idle              // of a connection; then the server ends the connection
	ringAgain  = 10 * time.Millisecond // longer than the server needs to begin a wait
)

// A bell is a GET_LOCK lock, and wakes the waiters behind the claims of the process. A
// connection holds the lock. Further connections wait for the locks of foreign processes.
type bell struct {
	db   *sql.DB
	wait string                 // see waitText
	name atomic.Pointer[string] // nil while the bell is not held

	start   sync.Once
	tried   chan struct{} // closed after the first attempt to get the lock
	ring    chan struct{} // a request to ring, of one place
	waits   chan struct{} // a place for each connection that waits
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

var _ sqlstore.Bell = (*bell)(nil)

// waitText waits for a bell. The waiter lets go of the bell within the statement, so that no
// waiter keeps the bell. The numbers are the values of [sqlstore.Heard].
const waitText = `SELECT CASE WHEN coalesce((SELECT version FROM %s WHERE name = ?), 0) <> ? THEN 2
WHEN is_used_lock(?) IS NULL THEN 3 ELSE coalesce(get_lock(?, 1), 3) END, release_lock(?)`

// newBell returns a bell on a server, for the claims in a table. The name of the table may be
// empty.
func newBell(config *mysql.Config, table string) (*bell, error) {
	table, err := quoted(cmp.Or(table, sqlstore.DefaultTable))
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.InterpolateParams = true // saves a round trip: no two waits have the same bell
	config.Params["wait_timeout"] = strconv.Itoa(int(bellSilent.Seconds()))
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return bellOf(sql.OpenDB(connector), table), nil
}

// bellOf returns a bell of db. The bell closes db.
func bellOf(db *sql.DB, table string) *bell {
	db.SetMaxOpenConns(maxWaits + 1)
	db.SetMaxIdleConns(maxWaits + 1)
	db.SetConnMaxIdleTime(idle)
	db.SetConnMaxLifetime(lifetime)
	b := &bell{db: db, wait: fmt.Sprintf(waitText, table), tried: make(chan struct{}), ring: make(chan struct{}, 1), waits: make(chan struct{}, maxWaits)}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// To implements [sqlstore.Bell].
func (b *bell) To() string {
	if name := b.name.Load(); name != nil {
		return *name
	}
	return ""
}

// Hang implements [sqlstore.Bell].
func (b *bell) Hang(ctx context.Context, within time.Duration) {
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
func (b *bell) run() {
	tried := sync.OnceFunc(func() { close(b.tried) })
	defer tried()
	name := "holdfast bell " + rand.Text()
	for pause := bellPause; b.life.Err() == nil; {
		err := b.hold(name, func() {
			pause = bellPause
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
		case <-time.After(pause):
			pause = min(2*pause, bellPauses)
		case <-b.life.Done():
		}
	}
}

var errBellTaken = errors.New("the bell is held by a different connection")

// hold keeps the bell for the lifetime of a connection, and rings.
func (b *bell) hold(name string, held func()) error {
	ctx, cancel := context.WithTimeout(b.life, bellLimit)
	conn, err := b.db.Conn(ctx)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	// The connection has the lock as long as the connection is open: no connection with the lock goes back to the pool.
	defer conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	if err := gets(b.life, conn, "SELECT get_lock(?, 1)", name); err != nil {
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
			err = ring(b.life, conn, name)
			again = time.After(ringAgain)
		case <-again:
			// A waiter may have compared the row before the release, and begun to wait after
			// the ring.
			again = nil
			err = ring(b.life, conn, name)
		case <-check.C:
			err = gets(b.life, conn, "SELECT is_used_lock(?) = connection_id()", name)
		case <-old.C:
			return gets(b.life, conn, "SELECT release_lock(?)", name)
		case <-b.life.Done():
			err = b.life.Err()
		}
	}
	return err
}

// ring lets the waiters get the lock one after the other, and then this connection again.
func ring(ctx context.Context, conn *sql.Conn, name string) error {
	return gets(ctx, conn, "SELECT release_lock(?) + get_lock(?, 1) = 2", name, name)
}

// gets runs a query that has to return 1.
func gets(ctx context.Context, conn *sql.Conn, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, bellLimit)
	defer cancel()
	var got sql.NullInt64
	err := conn.QueryRowContext(ctx, query, args...).Scan(&got)
	if err == nil && got.Int64 != 1 {
		err = errBellTaken
	}
	return err
}

// Ring implements [sqlstore.Bell].
func (b *bell) Ring() {
	select {
	case b.ring <- struct{}{}:
	default: // A ring that has not begun serves this release, too.
	}
}

var errManyWaits = errors.New("as many connections as may wait for bells wait")

// Wait implements [sqlstore.Bell].
func (b *bell) Wait(ctx context.Context, bell, name string, version int64) (heard sqlstore.Heard, err error) {
	select {
	case b.waits <- struct{}{}:
	default:
		return 0, errManyWaits
	}
	defer func() { <-b.waits }()
	ctx, cancel := context.WithTimeout(ctx, bellLimit)
	defer cancel()
	var left sql.NullInt64 // of the lock, which the statement has released
	err = b.db.QueryRowContext(ctx, b.wait, name, version, bell, bell, bell).Scan(&heard, &left)
	return heard, err
}

// Close implements [sqlstore.Bell].
func (b *bell) Close() error {
	b.end()
	b.start.Do(func() {})
	b.running.Wait()
	return b.db.Close()
}
