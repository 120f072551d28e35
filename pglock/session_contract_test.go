package pglock

import (
	"context"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// sessions is the harness of session mode at a server. Between its clients
// stand all claims of a database, so keys must differ.
func sessions(url string) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: terms.MinTTL,
		Open:   func(t testing.TB) driver.Store { return newSession(t, url) },
		Lacks: drivertest.Readers | drivertest.Slots | drivertest.Raise | drivertest.Queue |
			drivertest.Tombstones | drivertest.Details | drivertest.Reasons |
			drivertest.Outlive | drivertest.Roam | drivertest.Inspect,
	}
}

// newSession opens a store in session mode in a prepared database. The caller closes the
// store.
func newSession(t testing.TB, url string) *Session {
	t.Helper()
	return must.Get(NewSession(config(t, url), nil))
}

// prepared makes the sequence of session mode, which the shared server has, and returns url.
func prepared(t testing.TB, url string) string {
	t.Helper()
	s := newSession(t, url)
	defer s.Close()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	return url
}

// needsSessions is [servers.TooOld] for a test of session mode.
func needsSessions(t *testing.T) {
	t.Helper()
	if must.Get(strconv.Atoi(server.Must("SHOW server_version_num"))) < 14_00_00 {
		servers.TooOld(t, "session mode needs PostgreSQL 14 or newer", "HOLDFAST_POSTGRES", "HOLDFAST_TEST_POSTGRES")
	}
}

func TestSessionContract(t *testing.T) {
	needsSessions(t)
	t.Parallel()
	h := sessions(server.URL())
	h.Open = func(t testing.TB) driver.Store {
		s := newSession(t, server.URL())
		s.server.proved.Store(true) // else each of a hundred stores would prove the server
		return s
	}
	h.Linked = func(t testing.TB) (driver.Store, drivertest.Link) {
		p, url := linked(t)
		return newSession(t, url), p
	}
	drivertest.Run(t, h)
}

func BenchmarkSession(b *testing.B) { drivertest.Bench(b, sessions(server.URL())) }

func TestSessionWithoutSequence(t *testing.T) {
	t.Parallel()
	url := server.URL() + "&mode=session&sequence=elsewhere.missing"
	expectInvalid(t, sessiontest.Refused(t, url), "elsewhere.missing is missing: run \"holdfast init\" once")
}

func TestSessionWithWrongSequence(t *testing.T) {
	t.Parallel()
	server.Must("CREATE SEQUENCE cached INCREMENT 64 CACHE 20")
	expectInvalid(t, sessiontest.Refused(t, server.URL()+"&mode=session&sequence=cached"), "CACHE 1")
	server.Must("CREATE SEQUENCE endless INCREMENT 64")
	expectInvalid(t, sessiontest.Refused(t, server.URL()+"&mode=session&sequence=endless"), "MAXVALUE 9007199254740928")
	expectInvalid(t, sessiontest.Refused(t, server.URL()+"&mode=session&sequence=a%22b"), "letters, digits")
}
