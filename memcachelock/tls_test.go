package memcachelock

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestTLS dials with TLS, as ExampleNew does: the server has to prove its name.
func TestTLS(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcachedTLS(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name, test := range map[string]struct {
		config *tls.Config
		says   string
	}{
		"the right authority": {m.TLS.Config(), ""},
		"no authority":        {&tls.Config{}, "certificate"},
		"another name":        {&tls.Config{RootCAs: m.TLS.Config().RootCAs, ServerName: "example.com"}, "example.com"},
	} {
		dialer := &tls.Dialer{Config: test.config}
		s := must.Get(New([]string{m.Addr()}, &Options{Dial: dialer.DialContext}))
		defer s.Close()
		g, err := s.Acquire(ctx, exclusive("tls", name))
		if test.says == "" {
			if err != nil || !g.OK {
				t.Errorf("%s: %+v, %v", name, g, err)
			}
			continue
		}
		if g.OK || err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, g, err, test.says)
		}
	}
}

// TestNewPassword replaces the password while a lock is held: the open connection stays, a new
// connection needs the new URL.
func TestNewPassword(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcachedUser(t, "bob", "old")
	before := m.URL()
	s := opened(t, before)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	held := exclusive("held", "id")
	granted(t, s, held)
	m.SetPassword("new")
	for _, err := range s.Renew(ctx, []driver.Renewal{{Claim: held.Claim}}) {
		if err != nil {
			t.Errorf("renewed over the open connection: %v", err)
		}
	}
	servers.Until(t, "a refusal of the old password", func() bool {
		store, err := driver.Open(ctx, before)
		if err == nil {
			store.Close()
			t.Fatal("the old password was accepted")
		}
		return errors.Is(err, driver.ErrInvalid) && strings.Contains(err.Error(), "wants a user and a password")
	})
	granted(t, opened(t, m.URL()), exclusive("other", "id"))
}
