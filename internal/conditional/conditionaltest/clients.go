package conditionaltest

import (
	"net/http"
	"testing"
)

// Few limits the connections of a client that many stores share. Further requests wait in the
// client, where the end of their context removes them. A server would serve them all the same, and
// on a busy machine answer nobody in time.
func Few(t *http.Transport) { t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 16, 16 }

// Client returns a client for many stores, with [Few] connections.
func Client(t testing.TB) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	Few(transport)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
