package natslock_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// with returns a URL with files of TLS as parameters.
func with(url string, authority, client *servers.Certificates) string {
	url += "?synced=true"
	if authority != nil {
		url += "&ca=" + authority.CA
	}
	if client != nil {
		url += "&cert=" + client.Cert + "&key=" + client.Key
	}
	return url
}

// refused returns the error with which a server refuses a connection. A time-out is no refusal.
func refused(t *testing.T, url string) (err error) {
	t.Helper()
	servers.Until(t, "an answer", func() bool {
		var s driver.Store
		if s, err = driver.Open(t.Context(), url); err == nil {
			s.Close()
		}
		return !errors.Is(err, os.ErrDeadlineExceeded)
	})
	return err
}

// TestTLS proves to a server who the client is, if the server asks, and wants the same of the server.
func TestTLS(t *testing.T) {
	t.Parallel()
	server, strict := servers.StartNATSTLS(t), servers.StartNATSTLS(t, "verify: true")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, url := range []string{with(server.URL(), server.TLS, nil), with(strict.URL(), strict.TLS, strict.TLS)} {
		opened(t, url) // makes the stream
		a, b := locker(t, url), locker(t, url)
		handsOver(t, ctx, a, b, func(*holdfast.Lock) {})
	}
	elsewhere := strings.Replace(server.URL(), "127.0.0.1", "0.0.0.0", 1) // at which the same server answers
	for what, c := range map[string]struct{ url, want string }{
		"no authority":                    {with(server.URL(), nil, nil), "signed by unknown authority (ca=FILE"},
		"a foreign authority":             {with(server.URL(), strict.TLS, nil), "signed by unknown authority"},
		"a foreign name":                  {with(elsewhere, server.TLS, nil), "valid for 127.0.0.1, not 0.0.0.0"},
		"no certificate of the client":    {with(strict.URL(), strict.TLS, nil), ""},
		"a foreign certificate":           {with(strict.URL(), strict.TLS, server.TLS), ""},
		"a server without TLS":            {with(strings.Replace(shared.URL(), "nats:", "natss:", 1), server.TLS, nil), "secure connection not available"},
		"nats:// to a server that proves": {"nats://" + server.Addr(), "signed by unknown authority"},
	} {
		if err := refused(t, c.url); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
