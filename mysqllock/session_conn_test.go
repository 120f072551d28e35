package mysqllock

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// TestSessionEnds: when this side ends a session, the owners are notified while the server still has
// the connection. A sleeping server may notice a lost client late, so in the second case that shows
// only that the owners are notified before the session is lost.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *sessionServer, c *sessionConn){
		"the lock was not held": func(s *sessionServer, c *sessionConn) { c.Free(s.Name("key"), func(error) {}) },
		"the client gives up": func(_ *sessionServer, c *sessionConn) {
			for c.life.Err() == nil {
				ctx, cancel := context.WithTimeout(c.life, 100*time.Millisecond)
				_, _ = c.conn.ExecContext(ctx, "DO SLEEP(60)")
				cancel()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, config(t, server)).server
			var id int64
			var ending chan string
			var lost chan error
			conn := servers.Insist(t, func(ctx context.Context) (session.Conn, error) {
				notified, over := make(chan string, 1), make(chan error, 1)
				ending, lost = notified, over
				return s.Open(ctx, "ends", time.Hour, session.Events{
					Ending: func(error) {
						there := shared.Must(fmt.Sprint("SELECT count(*) FROM information_schema.processlist WHERE id = ", id))
						select {
						case notified <- there:
						default:
						}
					},
					Lost: func(err error) { over <- err },
				})
			}).(*sessionConn)
			if err := conn.conn.QueryRowContext(sessiontest.Bounded(t), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
				t.Fatal(err)
			}
			end(s, conn)
			select {
			case <-lost:
			case <-time.After(sessiontest.Patience):
				t.Fatal("the session goes on")
			}
			select {
			case there := <-ending:
				if there != "1" {
					t.Errorf("the server has %s connections of the session when the owners are notified of its end", there)
				}
			default:
				t.Error("the owners are notified after the server")
			}
		})
	}
}

// TestPumpCloses: if the client closes the connection, the session is notified before the server. If
// the server has ended the connection, the session gets that reason from whoever is first.
func TestPumpCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		said := make(chan string, 3)
		p := newPump(client, func(error) {
			synctest.Wait() // until the server has heard whatever it can hear by now
			said <- "the session"
		})
		go func() {
			_, _ = io.Copy(io.Discard, server)
			said <- "the server"
		}()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if first := <-said; first != "the session" {
			t.Errorf("the first to hear was %s", first)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		p := newPump(client, func(err error) {
			if err != io.EOF {
				t.Errorf("the server has ended the connection, and the session is notified of %v", err)
			}
		})
		server.Close()
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
