package pglock

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/session"
)

// A sessionConn is a session with PostgreSQL. A lock's name of 8 bytes, mixed with the
// sequence's number, is the number of an advisory lock. All waiters for the lock share a
// second advisory lock, with the inverted number.
type sessionConn struct {
	wire  *wire
	limit time.Duration // as last sent to the server
	apart uint64        // mixed into the numbers, see sequence.apart
}

var _ session.Pusher = (*sessionConn)(nil)

// channel is where a release notifies waiters.
const channel = "holdfast_session"

// statements are the statements of a session, by name. A session prepares the statements
// when opened; %s is the sequence's OID.
//
// try draws the token after acquiring the lock: the arms of a CASE are evaluated when
// chosen. free releases the lock before looking for waiters, and a waiter registers
// before looking at the lock again. So the release sees the waiter, or the waiter sees
// the release.
var statements = map[string]string{
	"try": `SELECT CASE WHEN pg_try_advisory_lock($1) THEN nextval('%s') END`,
	"free": `SELECT CASE WHEN pg_advisory_unlock($1) THEN
		CASE WHEN pg_try_advisory_xact_lock($2) THEN '' ELSE pg_notify('` + channel + `', to_hex($1))::text END END`,
	"wait":   `SELECT 0 FROM pg_advisory_lock_shared($1)`,
	"unwait": `SELECT pg_advisory_unlock_shared($1)`,

	// The server must not take the client for dead before the limit either.
	"limit": `SELECT set_config('idle_session_timeout', $1::bigint::text, false),
		set_config('tcp_user_timeout', $1::bigint::text, false),
		set_config('tcp_keepalives_idle', least($1::bigint / 1000 + 1, 32767)::text, false)`,
}

// number returns the number of the advisory lock of this name.
func (c *sessionConn) number(name string) []byte {
	return binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64([]byte(name))^c.apart)
}

// waiting returns the number of the lock that the waiters for name hold.
func (c *sessionConn) waiting(name string) []byte {
	return binary.BigEndian.AppendUint64(nil, ^binary.BigEndian.Uint64(c.number(name)))
}

// Ping implements [session.Conn].
func (c *sessionConn) Ping(limit time.Duration, done func(error)) {
	ended := func(_ []byte, err error) {
		if err != nil {
			c.wire.fail(err)
		}
		done(err)
	}
	if limit == c.limit {
		c.wire.send("", ended)
		return
	}
	c.limit = limit
	c.wire.send("limit", ended, milliseconds(limit))
}

func milliseconds(d time.Duration) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(min(d.Milliseconds(), math.MaxInt32)))
}

// Try implements [session.Conn].
func (c *sessionConn) Try(name string, _ bool, done func(token uint64, err error)) {
	c.wire.send("try", func(value []byte, err error) {
		switch {
		case err != nil:
			// The token may have failed after the lock was acquired.
			c.wire.send("free", func(_ []byte, failed error) {
				if failed != nil {
					c.wire.fail(failed)
				}
				done(0, err)
			}, c.number(name), c.waiting(name))
		case value == nil:
			done(0, nil)
		default:
			done(binary.BigEndian.Uint64(value), nil)
		}
	}, c.number(name))
}

// errNotHeld ends a session whose locks differ from this process's record.
var errNotHeld = errors.New("the server says that a lock was not held")

// Free implements [session.Conn].
func (c *sessionConn) Free(name string, done func(error)) {
	c.wire.send("free", func(value []byte, err error) {
		if err == nil && value == nil {
			err = errNotHeld
		}
		if err != nil {
			c.wire.fail(err)
		}
		done(err)
	}, c.number(name), c.waiting(name))
}

// Watch implements [session.Pusher]. Watch may wait for the short time in which a release
// looks for waiters.
func (c *sessionConn) Watch(name string, done func(error)) {
	c.wire.send("wait", func(_ []byte, err error) { done(err) }, c.waiting(name))
}

// Unwatch implements [session.Pusher].
func (c *sessionConn) Unwatch(name string) {
	c.wire.send("unwait", func([]byte, error) {}, c.waiting(name))
}

// Help implements [session.Conn].
func (c *sessionConn) Help(until <-chan struct{}) { c.wire.help(until) }

// Close implements [session.Conn].
func (c *sessionConn) Close(why error) { c.wire.close(why) }

// freed returns the name of the lock that a notification is about.
func (c *sessionConn) freed(payload string) (name string, ok bool) {
	n, err := strconv.ParseUint(payload, 16, 64)
	return string(binary.BigEndian.AppendUint64(nil, n^c.apart)), err == nil
}
