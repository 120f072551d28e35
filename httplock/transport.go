package httplock

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// The headers that carry a lock: its key, percent-encoded, and its fencing token
// in decimal.
const (
	KeyHeader   = "Holdfast-Key"
	FenceHeader = "Holdfast-Fence"
)

// A Transport sends key and fencing token of the lock in a request's context. The server
// can then refuse clients that have lost the lock (see [Fenced]). Requests whose context
// carries no lock are sent unchanged.
type Transport struct {
	base    http.RoundTripper
	origins []string
}

// NewTransport returns a Transport over base, or over [http.DefaultTransport] if base is
// nil. Only requests to the given origins, such as "https://api.example.com" or
// "http://localhost:8080", carry key and token. A redirect to a different origin carries
// neither, since keys may name people.
func NewTransport(base http.RoundTripper, origins ...string) (*Transport, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base}
	for _, text := range origins {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || text != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("httplock: origin %q must be http:// or https:// and a host, perhaps with a port, and nothing after it", text)
		}
		t.origins = append(t.origins, origin(u))
	}
	if len(t.origins) == 0 {
		return nil, fmt.Errorf("httplock: the Transport has no origin to send tokens to")
	}
	return t, nil
}

// origin returns scheme, host and port in a normal form.
func origin(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// RoundTrip sends a request. If the lock in the request's context is lost, the request is
// not sent and the error matches [holdfast.ErrLost]. If the lock's store has no tokens, the
// request is not sent and the error matches [holdfast.ErrNotFenced].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	lock, ok := holdfast.FromContext(r.Context())
	if !ok || !slices.Contains(t.origins, origin(r.URL)) {
		return t.base.RoundTrip(r)
	}
	token := lock.Fence()
	if token == 0 {
		if r.Body != nil {
			r.Body.Close()
		}
		if err := lock.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("httplock: lock on %q: %w", lock.Key(), holdfast.ErrNotFenced)
	}
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header.Set(KeyHeader, url.PathEscape(lock.Key()))
	r.Header.Set(FenceHeader, strconv.FormatUint(token, 10))
	return t.base.RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of the base Transport.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
