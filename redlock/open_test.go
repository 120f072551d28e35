package redlock

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

func TestURLNames(t *testing.T) {
	for _, test := range []struct {
		url        string
		names      []string
		quarantine time.Duration
	}{
		{"redlock://h1:1,h2:2,h3:3", []string{"redis://h1:1", "redis://h2:2", "redis://h3:3"}, 15 * time.Second},
		{"redlock://u:secret@a,b,c/2?prefix=x&quarantine=1m&scheme=rediss", []string{"rediss://u:xxxxx@a/2", "rediss://u:xxxxx@b/2", "rediss://u:xxxxx@c/2"}, time.Minute},
		{"redlock://?quarantine=0&node=mem://a&node=redis://u:secret@h:1/2?x=secret%26y=z&node=file:///c",
			[]string{"mem://a", "redis://u:xxxxx@h:1/2", "file:///c"}, 0},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(u)
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		var names []string
		for _, n := range s.nodes {
			names = append(names, n.name)
		}
		if !slices.Equal(names, test.names) || s.quarantine != test.quarantine {
			t.Errorf("%s: nodes %q, quarantine %v; want %q, %v", test.url, names, s.quarantine, test.names, test.quarantine)
		}
	}
}

// The nodes of the first form get all that redlock does not take for itself.
func TestURLsOfNodes(t *testing.T) {
	u, err := url.Parse("redlock://u:secret@a:1,b:2,c:3/2?prefix=x%26y&scheme=rediss")
	if err != nil {
		t.Fatal(err)
	}
	urls, err := redisNodes(u, u.Query())
	want := []string{"rediss://u:secret@a:1/2?prefix=x%26y", "rediss://u:secret@b:2/2?prefix=x%26y", "rediss://u:secret@c:3/2?prefix=x%26y"}
	if err != nil || !slices.Equal(urls, want) {
		t.Errorf("got %q, %v; want %q", urls, err, want)
	}
}

func TestWrongURLs(t *testing.T) {
	for _, test := range []struct{ url, says string }{
		{"redlock://", "names no nodes"},
		{"redlock:///3", "names no nodes"},
		{"redlock://a,b", "names 2 nodes (want 3 or more)"},
		{"redlock://a,,b,c", "empty"},
		{"redlock://a,b,a", `"a" is empty, or there twice`},
		{"redlock://a,b,c?quarantine=soon", "quarantine is not a duration"},
		{"redlock://a,b,c?quarantine=-1s", "quarantine"},
		{"redlock://a,b,c?quarantine=1s&quarantine=2s", "given 2 times"},
		{"redlock://a,b,c?scheme=http", "scheme is not redis or rediss"},
		{"redlock://a,b,c#x", "%23"},
		{"redlock://a,b,c?node=mem://a", "quarantine only"},
		{"redlock://?node=mem://a&node=mem://b&node=mem://c&prefix=x", "quarantine only"},
		{"redlock://?node=mem://a&node=mem://b", "names 2 nodes"},
		{"redlock://?node=mem://a&node=mem://b&node=mem://c?no=such", `"no"`},
		{"redlock://?node=mem://a&node=mem://b&node=http://u:secret@c", "no store for scheme"},
		{"redlock://?node=mem://a&node=mem://b&node=redis://u:secret/ret@c", "node 3: its URL does not parse"},
		{"redlock://?node=mem://a&node=mem://b&node=redis://u:secret%2540h:x", "node 3: its URL does not parse"},
	} {
		// In a bubble no node is late, whose URL would then not be looked at.
		synctest.Test(t, func(t *testing.T) {
			s, err := driver.Open(t.Context(), test.url)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, driver.ErrURL) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v; want ErrURL that says %q", test.url, err, test.says)
			}
		})
	}
}

// A node that cannot be opened now is opened later.
func TestOpensLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := false
		failing := errors.New("connection refused")
		s := newStore(-1)
		for _, name := range []string{"a", "b", "c"} {
			s.add(name, func(context.Context) (driver.Store, error) {
				if name == "b" && !up {
					return nil, failing
				}
				return memlock.New(), nil
			})
		}
		t.Cleanup(func() { _ = s.Close() })
		c := driver.Claim{Key: "key", ID: "one", Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
		g, err := s.Acquire(t.Context(), driver.Ask{Claim: c})
		if err != nil || !g.OK {
			t.Fatal(g, err)
		}
		if errs := s.Release(t.Context(), []driver.Release{{Claim: c}}); errs != nil {
			t.Fatal(errs)
		}
		up = true
		s.nodes[1].retry = time.Time{}
		if err := s.nodes[1].call(t.Context(), func(driver.Store) error { return nil }); err != nil {
			t.Errorf("the node that is up now: %v", err)
		}
	})
}

// A call that comes while a node is being opened waits for it, within its limit.
func TestWaitsForTheOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(-1)
		n := s.add("a", func(context.Context) (driver.Store, error) {
			time.Sleep(20 * time.Millisecond)
			return memlock.New(), nil
		})
		defer s.Close()
		ask := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return n.call(ctx, func(driver.Store) error { return nil })
		}
		first := make(chan error, 1)
		go func() { first <- ask(time.Second) }()
		synctest.Wait()
		if err := ask(10 * time.Millisecond); !errors.Is(err, errOpening) {
			t.Errorf("within half of the time that it takes: %v, want %v", err, errOpening)
		}
		if err := errors.Join(ask(time.Second), <-first); err != nil {
			t.Error(err)
		}
	})
}

var errDown = errors.New("connection refused")

func init() {
	driver.Register("down", func(context.Context, *url.URL) (driver.Store, error) { return nil, errDown })
}

func TestOpenNeedsAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := driver.Open(t.Context(), "redlock://?node=mem://a&node=mem://b&node=down://u:secret@c")
		if err != nil {
			t.Fatalf("one of three nodes cannot be opened: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_, err = driver.Open(t.Context(), "redlock://?node=mem://a&node=down://u:secret@b&node=down://c")
		if !errors.Is(err, errDown) || errors.Is(err, driver.ErrURL) || strings.Contains(err.Error(), "secret") ||
			!strings.Contains(err.Error(), "1 of 3 nodes answered, 2 needed: ") {
			t.Errorf("two of three nodes cannot be opened: %v", err)
		}
	})
}
