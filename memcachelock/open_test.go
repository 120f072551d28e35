package memcachelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url     string
		servers []string
		opts    Options
	}{
		{"memcached://", []string{"127.0.0.1:11211"}, Options{Prefix: "holdfast:", Conns: 8}},
		{"memcached://Cache.example.com/", []string{"cache.example.com:11211"}, Options{Prefix: "holdfast:", Conns: 8}},
		{"memcached://h1:1,h2:2/?prefix=app:&conns=2", []string{"h1:1", "h2:2"}, Options{Prefix: "app:", Conns: 2}},
		{"memcached://h2,h1", []string{"h2:11211", "h1:11211"}, Options{Prefix: "holdfast:", Conns: 8}},
		{"memcached://[::1]", []string{"[::1]:11211"}, Options{Prefix: "holdfast:", Conns: 8}},
		{"memcached://bob:se%20cret@h1", []string{"h1:11211"}, Options{Prefix: "holdfast:", Conns: 8, User: "bob", Password: "se cret"}},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		list, opts, err := parse(u)
		if err != nil || !slices.Equal(list, test.servers) || fmt.Sprint(*opts) != fmt.Sprint(test.opts) {
			t.Errorf("%s: %q, %+v, %v", test.url, list, opts, err)
		}
	}
	for at, says := range map[string]string{
		"memcached://h1,,h2":                               "empty",
		"memcached://:11211":                               "empty",
		"memcached://h1,H1:11211":                          "twice",
		"memcached://h1/0":                                 "want memcached://host:port",
		"memcached:h1":                                     "want memcached://host:port",
		"memcached://h1?prefiks=x":                         `unknown URL parameter "prefiks"`,
		"memcached://h1?conns=0":                           "conns",
		"memcached://h1?prefix=a%20b":                      "prefix",
		"memcached://h1?prefix=" + strings.Repeat("x", 61): "prefix",
		"memcached://bo%3Ab:secret@h1":                     "colon",
		"memcached://bob:secret%0Aquit@h1":                 "end of a line",
	} {
		_, err := driver.Open(t.Context(), at)
		if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want an ErrURL that says %s", at, err, says)
		}
	}
}

// TestWarnsOfPlainPasswords takes 0.0.0.0 for another host, at which this one answers.
func TestWarnsOfPlainPasswords(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcachedUser(t, "bob", "secret", "-M")
	elsewhere := strings.Replace(m.Addr(), "127.0.0.1", "0.0.0.0", 1)
	for at, warns := range map[string]bool{m.URL(): false, strings.Replace(m.URL(), m.Addr(), elsewhere, 1): true} {
		s := opened(t, at)
		warnings, err := s.Check(t.Context())
		told := len(warnings) == 1 && strings.Contains(warnings[0], elsewhere+" may be unencrypted")
		if told != warns || len(warnings) > 1 || err != nil {
			t.Errorf("%s: warnings %q, %v", at, warnings, err)
		}
	}
}

// opened opens a store that is closed with the test.
func opened(t *testing.T, url string) *Store {
	t.Helper()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
	t.Cleanup(func() { s.Close() })
	return s.(*Store)
}

// TestOpenErrors opens what is no server, or lets nobody in: each says so in
// time, and shows no password.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	user, counting := servers.StartMemcachedUser(t, "bob", "secret"), servers.StartMemcached(t, "-C")
	paused, gone := servers.StartMemcached(t), servers.StartMemcached(t)
	paused.Pause()
	gone.Kill()
	wrong := as(user, "bob", "sekret")
	for at, want := range map[string]struct {
		says    string
		invalid bool
	}{
		"memcached://" + user.Addr(): {"wants a user and a password", true},
		wrong:                        {"wants a user and a password", true},
		counting.URL():               {"-C", true},
		gone.URL():                   {"connection refused", false},
		paused.URL():                 {context.DeadlineExceeded.Error(), false},
		"memcached://" + servers.StartRedis(t).Addr():                                           {"no Memcached", false},
		"memcached://" + other(t, "HTTP/1.1 400 Bad Request\r\n\r\n"):                           {"no Memcached server", false},
		"memcached://" + other(t, "-ERR unknown command\r\n"):                                   {"no Memcached server", false},
		"memcached://" + other(t, strings.Repeat("x", 100_000)):                                 {"no Memcached server", false},
		"memcached://" + other(t, ""):                                                           {"is it a Memcached", false},
		"memcached://" + other(t, "ERROR\r\nERROR\r\nERROR\r\n"):                                {"1.6.10 or later", true},
		"memcached://" + other(t, "STORED\r\nVA 99999999999999 c1 t5\r\n"):                      {"99999999999999", false},
		"memcached://" + other(t, "STORED\r\nVA 1 cx t5\r\nx\r\n"):                              {"cx", false},
		"memcached://" + other(t, "STORED\r\nVA 1 c1 t-1\r\nx\r\n"):                             {"is not as it was made", false},
		"memcached://" + other(t, "STORED\r\nVA 1 c1 t5\r\nx\r\nSTAT time x\r\nEND\r\n"):        {"stats say", false},
		"memcached://" + other(t, "STORED\r\nVA 1 c1 t5\r\nx\r\nSTAT version 1.6.9\r\nEND\r\n"): {"has the version 1.6.9, and the store needs 1.6.10 or later", true},
	} {
		servers.Until(t, at+" to say "+want.says, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), patience/6)
			defer cancel()
			s, err := driver.Open(ctx, at)
			if err == nil {
				s.Close()
				t.Errorf("%s was opened", at)
				return true
			}
			if strings.Contains(err.Error(), "sekret") || strings.Contains(err.Error(), "secret") {
				t.Errorf("a password is shown: %v", err)
			}
			says := strings.Contains(err.Error(), want.says)
			if !says && errors.Is(err, context.DeadlineExceeded) {
				return false // this time
			}
			if !says || errors.Is(err, driver.ErrInvalid) != want.invalid {
				t.Errorf("%s: %v; want %s, ErrInvalid: %v", at, err, want.says, want.invalid)
			}
			return true
		})
	}
	granted(t, opened(t, user.URL()), exclusive("key", "mine"))
}

// TestPasswordIsNotStored gives a password to a server that wants none, and has
// an item of somebody else.
func TestPasswordIsNotStored(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	m.Must("set user 0 0 5\r\nalice", "STORED")
	s := opened(t, as(m, "bob", "secret"))
	m.Must("mg user s t", "HD s5 t-1")
	m.Must("mg "+s.opts.authItem()+" v", "EN")
	granted(t, s, exclusive("key", "mine"))
}

func as(m *servers.Memcached, user, password string) string {
	u := url.URL{Scheme: "memcached", Host: m.Addr(), User: url.UserPassword(user, password)}
	return u.String()
}

// other listens for those who speak Memcached's protocol, and has one answer.
func other(t *testing.T, answer string) string {
	t.Helper()
	return servers.StartStranger(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1<<16))
		_, _ = io.WriteString(conn, answer)
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*Options{"": nil, "h": {Prefix: "a b"}} {
		if _, err := New(strings.Fields(name), opts); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("New of the servers %q with %+v: %v", name, opts, err)
		}
	}
}

// TestForeignItem finds what somebody else has stored under the name of a lock:
// it is not trusted, and not touched.
func TestForeignItem(t *testing.T) {
	t.Parallel()
	s := newStore(t, nil, shared)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, value := range []string{"hello", `{"format":1,"key":"somebody else's"}`, `{"key":"key"}`, `{}`, ""} {
		key := fmt.Sprint("foreign ", i)
		shared.Must(fmt.Sprintf("set %s 0 60 %d\r\n%s", s.opts.item(key), len(value), value), "STORED")
		if g, err := s.Acquire(ctx, exclusive(key, "id")); err == nil || g.OK || !strings.Contains(err.Error(), "foreign") {
			t.Errorf("%q: %+v, %v", value, g, err)
		}
		shared.Must(fmt.Sprintf("mg %s s", s.opts.item(key)), fmt.Sprintf("HD s%d", len(value)))
	}
	for key, err := range s.Keys(t.Context(), "foreign") {
		t.Errorf("%q is a key (%v)", key, err)
	}
}
