package pglock

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/session"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// TestSessionKeepsNoLockUnseen: when the token cannot be drawn, and the lock that
// was taken for it cannot be given back, the session ends, and the lock with it. Owners hear of
// it first.
func TestSessionKeepsNoLockUnseen(t *testing.T) {
	t.Parallel()
	server.Must("CREATE DATABASE unseen")
	server.Must("CREATE ROLE unseen LOGIN PASSWORD 'unseen'")
	at := strings.Replace(strings.Replace(server.URL(), "/postgres?", "/unseen?", 1), "postgres:secret@", "unseen:unseen@", 1)
	in := func(sql string) {
		t.Helper()
		server.Must("\\connect unseen\n" + sql)
	}
	in("CREATE SEQUENCE unseen INCREMENT BY 64 MAXVALUE 9007199254740928; GRANT ALL ON SEQUENCE unseen TO unseen")
	s := must.Get(NewSession(config(t, at), &SessionOptions{Sequence: "unseen"})).server
	lost := make(chan error, 1)
	alive := false // the session, when Ending is called
	conn, err := s.Open(sessiontest.Bounded(t), "unseen", time.Hour, session.Events{
		Ending: func(error) {
			alive = server.Must("SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'unseen'") == "t"
		},
		Lost: func(err error) { lost <- err },
		Free: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(errClosed)
	in("DROP SEQUENCE unseen; REVOKE EXECUTE ON FUNCTION pg_advisory_unlock(bigint) FROM PUBLIC")
	tried := make(chan error, 1)
	conn.Try(s.Name("key"), false, func(_ uint64, err error) { tried <- err })
	if err := <-tried; err == nil || !strings.Contains(err.Error(), "could not open relation") {
		t.Errorf("without the sequence: %v", err)
	}
	select {
	case err := <-lost:
		if !strings.Contains(err.Error(), "pg_advisory_unlock") {
			t.Errorf("the session has ended with %v", err)
		}
		if !alive {
			t.Error("the owners have not heard of the end before the server did")
		}
	case <-time.After(sessiontest.Patience):
		t.Error("the session goes on, and has a lock that nobody knows of")
	}
}

// TestWireTellsEmptyFromNull: the first answer of a connection may be either.
func TestWireTellsEmptyFromNull(t *testing.T) {
	t.Parallel()
	for value, null := range map[string]bool{"''": false, "NULL": true} {
		conn, err := pgconn.Connect(sessiontest.Bounded(t), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Prepare(sessiontest.Bounded(t), "value", "SELECT "+value+"::text", nil); err != nil {
			t.Fatal(err)
		}
		hijacked, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		w := newWire(hijacked.Conn, hijacked.Frontend, wireEvents{func(uint32, string) {}, func(error) {}, func(error) {}})
		answered := make(chan bool, 1)
		w.send("value", func(value []byte, err error) { answered <- err == nil && value == nil })
		if got := <-answered; got != null {
			t.Errorf("%s is taken for NULL: %t", value, got)
		}
		w.close(errClosed)
	}
}

// TestWireEnds: the owners hear of the end before the server does, and once, although every
// request that has no answer fails.
func TestWireEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(server net.Conn, c *sessionConn){
		"an unknown message":   func(server net.Conn, _ *sessionConn) { _, _ = server.Write([]byte{'?', 0, 0, 0, 4}) },
		"an unexpected answer": func(_ net.Conn, c *sessionConn) { c.wire.fail(errNotHeld) },
		"a failed write":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const pings = 3 * direct
				client, server := net.Pipe()
				if end == nil {
					client = unwritable{client}
				}
				said := make(chan string, 2*pings)
				c := &sessionConn{wire: newWire(client, pgproto3.NewFrontend(client, client), wireEvents{
					ending: func(error) {
						synctest.Wait() // until the server has heard whatever it can hear by now
						said <- "ending"
					},
					lost: func(error) { said <- "lost" },
				})}
				go func() {
					_, _ = io.Copy(io.Discard, server)
					said <- "closed"
				}()
				for range pings {
					c.Ping(0, func(err error) {
						if err == nil {
							t.Error("a ping has no answer and no error")
						}
					})
				}
				if end != nil {
					go end(server, c)
				}
				if first := <-said; first != "ending" {
					t.Errorf("the first of the end was %q", first)
				}
				rest := []string{<-said, <-said}
				slices.Sort(rest)
				synctest.Wait()
				if len(said) > 0 || !slices.Equal(rest, []string{"closed", "lost"}) {
					t.Errorf("after that came %q and %d others", rest, len(said))
				}
			})
		})
	}
}

// unwritable is a connection whose writes fail.
type unwritable struct{ net.Conn }

func (unwritable) Write([]byte) (int, error) { return 0, errors.New("no write") }

// TestSessionServes has what servers say of themselves that are not there to ask.
func TestSessionServes(t *testing.T) {
	t.Parallel()
	const pid = 42
	for row, words := range map[string]string{
		"42 130099 f PostgreSQL": "session mode needs PostgreSQL 14 or newer, which can end a silent session; this one has the version number 130099",
		"42 90624 f PostgreSQL":  "PostgreSQL 14 or newer",
		"43 150018 f PostgreSQL": "connect to the server itself, or use lease mode",
	} {
		expectInvalid(t, serves(pid, strings.Fields(row)), words)
	}
	if err := serves(pid, []string{"42", "150018", "t", "PostgreSQL 15.18"}); err == nil || !strings.Contains(err.Error(), "standby") {
		t.Errorf("a standby: %v", err)
	}
	for _, row := range []string{"42 140000 f PostgreSQL", "42 180001 f PostgreSQL"} {
		if err := serves(pid, strings.Fields(row)); err != nil {
			t.Errorf("%s: %v", row, err)
		}
	}
}
