package pglock

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
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

// newSession opens a store in session mode. Whoever uses it closes it.
func newSession(t testing.TB, url string) *Session {
	t.Helper()
	s := NewSession(config(t, url), nil)
	if err := s.Create(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSessionContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, sessions(server.URL()))
}

func BenchmarkSession(b *testing.B) { drivertest.Bench(b, sessions(server.URL())) }

func TestSessionWithoutSequence(t *testing.T) {
	t.Parallel()
	url := server.URL() + "&mode=session&sequence=elsewhere.missing"
	_, err := holdfast.Open(t.Context(), url, nil)
	expectInvalid(t, err, "elsewhere.missing is missing: run holdfast init")
}

func TestSessionWithWrongSequence(t *testing.T) {
	t.Parallel()
	server.Must("CREATE SEQUENCE cached INCREMENT 64 CACHE 20")
	_, err := holdfast.Open(t.Context(), server.URL()+"&mode=session&sequence=cached", nil)
	expectInvalid(t, err, "CACHE 1")
	_, err = holdfast.Open(t.Context(), server.URL()+"&mode=session&sequence=a%22b", nil)
	expectInvalid(t, err, "letters, digits")
}
