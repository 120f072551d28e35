package conditionaltest

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Prefixes are a prefix for each test.
type Prefixes struct{ all sync.Map }

// Of returns the prefix of a test.
func (p *Prefixes) Of(t testing.TB) string {
	own, _ := p.all.LoadOrStore(t, strings.ToLower(rand.Text()))
	return own.(string)
}

// Connections limits the connections of a client that the stores of a test share. Further requests
// wait in the client, and end there with their context. The emulators serve every request that they
// have got, even if the caller has given up: on a busy machine they fell behind by half a minute. A
// benchmark has no limit.
func Connections(t testing.TB) func(*http.Transport) {
	const idle, few = 100, 16
	return func(to *http.Transport) {
		to.MaxIdleConnsPerHost = idle
		if _, bench := t.(*testing.B); !bench {
			to.MaxConnsPerHost = few
		}
	}
}

// Client returns a client with such connections.
func Client(t testing.TB) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	Connections(t)(transport)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
