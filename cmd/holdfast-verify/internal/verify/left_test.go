package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/memlock"
)

// wantLeft waits until look finds what is wanted. A server may not know yet that a client has left.
func wantLeft(t *testing.T, look func() []string, want ...string) {
	t.Helper()
	servers.Await(t, "what is left", func() error {
		left := look()
		if !slices.EqualFunc(left, want, strings.Contains) {
			return fmt.Errorf("%q is left, want %q", left, want)
		}
		return nil
	})
}

func TestLeftInRedis(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	left := leftInRedis(r)
	look := func() []string { return left(keep) }
	r.Must("SET", "holdfast:floor", "7")
	r.Must("SET", "holdfast:{179}:held:holdfast/canary/x", "x", "PX", "60000")
	if left := keysLeft(r, keep); len(left) > 0 {
		t.Errorf("a proof that was cut off has left %q, which ends by itself", left)
	}
	wantLeft(t, look)
	r.Must("SET", "holdfast:late", "x", "PX", "300000")
	wantLeft(t, look, "holdfast:late")
	r.Must("PERSIST", "holdfast:late")
	wantLeft(t, look, "holdfast:late")
	r.Must("DEL", "holdfast:late")
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CLIENT SETNAME idle\r\n") // as the last that a client has said
	if _, err := conn.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, look, " name=idle ")
	connect(t, register.Place{Kind: register.Redis, At: r.URL()})
	if left := look(); len(left) == 0 || !strings.Contains(left[0], "connection") {
		t.Errorf("%q is left, want a connection", left)
	}
}

// A lock that is held is found in the server itself, and so is who holds it. When it
// was given back and its store closed, nothing is found.
func TestLeft(t *testing.T) {
	for name, want := range map[string][]string{
		"sqlite":           {"row held"},
		"redis:2":          {":held:held", "connection"},
		"redis-sentinel":   {":held:held", "connection", "cmd=subscribe"},
		"redis-cluster":    {":held:held", "connection"},
		"memcached":        {"item holdfast:=held", "connection"},
		"postgres":         {"row held", "connection"},
		"postgres-session": {"advisory lock", "connection"},
		"mariadb":          {"row held", "connection"},
		"etcd":             {"key holdfast/claims/held/", "lease", "connection"},
		"zookeeper:3":      {"znode_count", "ephemerals_count", "connections"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !slices.Contains([]string{"sqlite", "redis:2", "memcached"}, name) {
				t.Skip("starts servers that take long: make prove")
			}
			t.Parallel()
			s, err := starterOf(name)
			if err != nil {
				t.Fatal(err)
			}
			e := s.start(&room{TB: t, Config: Default(), folder: t.TempDir()}, s.servers)
			if err := (&target{started: true}).patiently(t.Context(), e.prepare); err != nil {
				t.Fatal(err)
			}
			if name != "sqlite" && !strings.Contains(e.version, ".") {
				t.Errorf("its version is %q", e.version)
			}
			wantLeft(t, func() []string { return e.left(keep) })
			locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
				return holdfast.Open(ctx, e.url, &holdfast.Options{TTL: keep + 30*time.Second})
			})
			lock, err := servers.Patient(t.Context(), locks.Lock, "held")
			if err != nil {
				t.Fatal(err)
			}
			for _, what := range want { // Memcached may leave out an item while it moves the item
				servers.Until(t, "a look that shows: "+what, func() bool {
					return strings.Contains(strings.Join(e.left(keep), "\n"), what)
				})
			}
			if err := errors.Join(unlocking.Release(lock.Unlock), unlocking.Release(locks.Close)); err != nil {
				t.Fatal(err)
			}
			wantLeft(t, func() []string { return e.left(keep) })
		})
	}
}

// connect leaves a connection until the test ends.
func connect(t *testing.T, at register.Place) {
	t.Helper()
	r, err := at.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.Create(t.Context(), []register.Name{{Key: "k"}}); err != nil {
		t.Fatal(err)
	}
}

// A deafStore never answers the first question who holds a key, as a server whose answer is lost.
type deafStore struct {
	*memlock.Store
	asked atomic.Int32
}

func (d *deafStore) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	if d.asked.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.Store.Holders(ctx, key)
}

// A lost answer does not keep a run from its end.
func TestRemainsAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &deafStore{Store: memlock.New()}
		locks := must.Get(holdfast.New(store, nil))
		defer locks.Close()
		lock := must.Get(locks.Lock(t.Context(), "key"))
		defer lock.Unlock()
		left, err := (&target{}).remains(t.Context(), locks, time.Minute)
		if err != nil || len(left["key"]) != 1 {
			t.Errorf("%v, %v; want the holder", left, err)
		}
	})
}

// A claim that goes within a while was not left; a claim that stays is reported.
func TestCount(t *testing.T) {
	looks := 0
	s := &scene{Config: Default(), host: &servers.Host{}, target: &target{url: &url.URL{Scheme: "mem"}, engine: &engine{left: func(time.Duration) []string {
		if looks++; looks < 3 {
			return []string{"a key"}
		}
		return nil
	}}}}
	s.count(t.Context())
	if len(s.litter) > 0 || looks != 3 {
		t.Errorf("%q is left after %d looks", s.litter, looks)
	}
	looks = -1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	s.count(ctx)
	if !slices.Equal(s.litter, []string{"a key"}) {
		t.Errorf("%q is left, want a key", s.litter)
	}
}
