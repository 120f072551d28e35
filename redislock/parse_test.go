package redislock

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
)

func TestParse(t *testing.T) {
	tests := []struct {
		url       string
		addresses []string
		db        int
		opts      Options
		user      string
		password  string
		master    string
		tls       bool
	}{
		{url: "redis://", addresses: []string{"127.0.0.1:6379"}},
		{url: "redis://h", addresses: []string{"h:6379"}},
		{url: "redis://h:1/7", addresses: []string{"h:1"}, db: 7},
		{url: "redis://h?db=3", addresses: []string{"h:6379"}, db: 3},
		{url: "redis://[::1]:1", addresses: []string{"[::1]:1"}},
		{url: "redis://[::1]", addresses: []string{"[::1]:6379"}},
		{url: "redis://a,b,c", addresses: []string{"a:6379", "b:6379", "c:6379"}},
		{url: "redis://a:1,b:2", addresses: []string{"a:1", "b:2"}},
		{url: "redis://u:p%40ss@h", addresses: []string{"h:6379"}, user: "u", password: "p@ss"},
		{url: "redis://:only@h", addresses: []string{"h:6379"}, password: "only"},
		{url: "redis://s1,s2?master=m", addresses: []string{"s1:26379", "s2:26379"}, master: "m"},
		{url: "redis://a?addr=b:1&addr=c", addresses: []string{"a:6379", "b:1", "c:6379"}},
		{url: "redis://s1?master_set=m&addr=s2", addresses: []string{"s1:26379", "s2:26379"}, master: "m"},
		{url: "redis://s1?master_name=m&sentinel_username=x", addresses: []string{"s1:26379"}, master: "m"},
		{url: "rediss://h", addresses: []string{"h:6379"}, tls: true},
		{url: "redis://h?prefix=app:&wait=2", addresses: []string{"h:6379"}, opts: Options{Prefix: "app:", Wait: 2}},
		{url: "unix:///run/redis.sock?db=2", addresses: []string{"/run/redis.sock"}, db: 2},
	}
	for _, test := range tests {
		t.Run(test.url, func(t *testing.T) {
			u, err := url.Parse(test.url)
			if err != nil {
				t.Fatal(err)
			}
			client, opts, _, err := parse(u)
			if err != nil {
				t.Fatal(err)
			}
			if test.opts.Prefix == "" {
				test.opts.Prefix = DefaultPrefix
			}
			if !slices.Equal(client.InitAddress, test.addresses) || client.SelectDB != test.db || *opts != test.opts ||
				client.Username != test.user || client.Password != test.password ||
				client.Sentinel.MasterSet != test.master || (client.TLSConfig != nil) != test.tls {
				t.Errorf("got %q, database %d, %+v, user %q, master %q, TLS %v", client.InitAddress, client.SelectDB, *opts,
					client.Username, client.Sentinel.MasterSet, client.TLSConfig != nil)
			}
		})
	}
}

func TestParseFails(t *testing.T) {
	for text, want := range map[string]string{
		"redis://h/x":                      "database after the host is not a number",
		"redis://h/-1":                     "database after the host is not a number",
		"redis://h/1?db=2":                 "twice",
		"redis://h?wait=-1":                "wait",
		"redis://h?wait=x":                 "wait",
		"redis://h?timeout=1s":             `unknown URL parameter "timeout"`,
		"redis://h?prefix=a{b":             "brace",
		"redis://a,,b":                     "empty",
		"redis:h":                          "want redis://",
		"redis://h#x":                      "want redis://",
		"redis://h?ca=x":                   "rediss",
		"redis://h?sentinel_user=x":        "master",
		"redis://h?server_name=x":          "rediss",
		"rediss://h?ca=missing.pem":        "missing.pem",
		"rediss://h?cert=c.pem":            "cert and key",
		"unix://h/path":                    "unix:///path",
		"unix://":                          "unix:///path",
		"unix:///path?master=m":            "master",
		"redis://u:secret@h?nonsense=more": "nonsense",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := driver.Open(t.Context(), text)
			if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an ErrURL that has %q", err, want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v shows the password", err)
			}
		})
	}
}
