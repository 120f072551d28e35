package redislock_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// works takes a lock in the store that a URL names.
func works(t *testing.T, url string) {
	t.Helper()
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
	defer locks.Close()
	mustUnlock(t, mustLock(t, locks, "key"))
}

func TestOpenSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redis.sock")
	servers.StartRedis(t, "unixsocket "+path)
	works(t, "unix://"+path)
	works(t, "unix://"+path+"?db=3")
}

func TestOpenWithPassword(t *testing.T) {
	servers.NeedRedis7(t)
	server := servers.StartRedis(t, "user worker on >secret ~* &* +@all")
	works(t, "redis://worker:secret@"+server.Addr())
	for _, wrong := range []string{"worker:wrong-one", "nobody:wrong-one"} {
		_, err := driver.Open(t.Context(), unhurried("redis://"+wrong+"@"+server.Addr()))
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "wrong-one") {
			t.Errorf("as %s: got %v, want WRONGPASS and not the password", wrong, err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	server := servers.StartRedis(t)
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := driver.Open(ctx, server.URL()); err == nil {
		t.Error("a server that does not answer was opened")
	}
	if _, err := driver.Open(t.Context(), "redis://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v, want an error that names the address", err)
	}
}

// TestOpenWithWrongClock looks at a server from a machine that is in the year
// 2000, which is where bubbles begin.
func TestOpenWithWrongClock(t *testing.T) {
	server := servers.StartRedis(t)
	synctest.Test(t, func(t *testing.T) {
		if _, err := driver.Open(t.Context(), unhurried(server.URL())); err == nil || !strings.Contains(err.Error(), "clock") {
			t.Errorf("got %v, want an error that tells of the clocks", err)
		}
	})
}

// TestHungServer expects calls to end with their context, and Close before long,
// also where a connection has to be made first.
func TestHungServer(t *testing.T) {
	server := servers.StartRedis(t)
	for _, query := range []string{"", "?wait=1"} {
		for _, listening := range []bool{false, true} {
			t.Run(fmt.Sprint(query, listening), func(t *testing.T) {
				store := openStore(t, server.URL()+query)
				c := exclusive("key", "id")
				watch := func(ctx context.Context) error {
					_, err := store.Watch(ctx, exclusive("key", "waiter"), func(driver.Grant) {})
					return err
				}
				if listening {
					if err := watch(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				server.Pause()
				defer server.Resume()
				for name, call := range map[string]func(context.Context) error{
					"Acquire": func(ctx context.Context) error { _, err := store.Acquire(ctx, driver.Ask{Claim: c}); return err },
					"Renew":   func(ctx context.Context) error { return store.Renew(ctx, []driver.Renewal{{Claim: c}})[0] },
					"Release": func(ctx context.Context) error { return store.Release(ctx, []driver.Release{{Claim: c}})[0] },
					"Watch":   watch,
				} {
					if name == "Watch" && listening {
						continue
					}
					for _, parent := range []context.Context{context.Background(), t.Context()} {
						began := time.Now()
						ctx := new(bounded.Context).Start(parent, began.Add(50*time.Millisecond))
						err := call(ctx)
						ctx.End()
						if took := time.Since(began); err == nil || took > patience/2 {
							t.Errorf("%s returned %v after %v, want an error when the context had ended", name, err, took)
						}
					}
				}
				began := time.Now()
				if err := store.Close(); err != nil || time.Since(began) > patience/2 {
					t.Errorf("Close returned %v after %v", err, time.Since(began))
				}
			})
		}
	}
}

func TestAge(t *testing.T) {
	server := servers.StartRedis(t)
	store := opening(server.URL()).Open(t)
	defer store.Close()
	ager := store.(driver.Ager)
	server.Must("CONFIG", "RESETSTAT") // A slow server was asked several times until it was ready.
	first, err := ager.Age(t.Context())
	if err != nil || first < 0 || first > time.Minute {
		t.Fatalf("a new server is %v old, %v", first, err)
	}
	for range 20 {
		second, err := ager.Age(t.Context())
		if err != nil || second < first {
			t.Errorf("then %v, %v; before it was %v", second, err, first)
		}
	}
	if calls := count(t, server, "info"); calls > 3 {
		t.Errorf("it was asked %d times, want once after each new connection", calls)
	}
	// Uptime is told in whole seconds.
	until(t, "an age of two seconds", func() bool {
		age, err := ager.Age(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return age >= 2*time.Second
	})
	restarted := time.Now()
	server.Restart()
	until(t, "an answer of the new server", func() bool { // The first calls may find the connections of before.
		_, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("k", "id")})
		return err == nil
	})
	if age, err := ager.Age(t.Context()); err != nil || age > time.Since(restarted) {
		t.Errorf("after a restart the server is %v old, %v", age, err)
	}
}

func TestCheck(t *testing.T) {
	server := servers.StartRedis(t)
	store := opening(server.URL()).Open(t)
	defer store.Close()
	warnings := func() []string {
		w, err := store.(driver.Checker).Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := warnings(); len(w) != 0 {
		t.Errorf("a server without a limit: %q", w)
	}
	server.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if w := warnings(); len(w) != 0 {
		t.Errorf("a server that never evicts, because it has no limit: %q", w)
	}
	server.Must("CONFIG", "SET", "maxmemory", "100mb")
	if w := warnings(); len(w) != 1 || !strings.Contains(w[0], "allkeys-lru") || !strings.Contains(w[0], "noeviction") {
		t.Errorf("a server that evicts: %q, want a warning that names the policy and the right one", w)
	}
	server.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")
	if w := warnings(); len(w) != 0 {
		t.Errorf("a server that refuses: %q", w)
	}
}

// TestForgottenScripts has the server forget the scripts between calls, also
// one of many.
func TestForgottenScripts(t *testing.T) {
	server := servers.StartRedis(t)
	store := opening(server.URL()).Open(t)
	defer store.Close()
	var renewals []driver.Renewal
	var releases []driver.Release
	for i := range 500 {
		c := driver.Claim{Key: strings.Repeat("k", i+1), ID: "id", Weight: 1, Limit: 1, TTL: time.Hour}
		renewals, releases = append(renewals, driver.Renewal{Claim: c}), append(releases, driver.Release{Claim: c})
		if i%100 == 0 {
			server.Must("SCRIPT", "FLUSH")
		}
		if g, err := store.Acquire(t.Context(), driver.Ask{Claim: c}); err != nil || !g.OK {
			t.Fatal(g, err)
		}
	}
	server.Must("SCRIPT", "FLUSH")
	for i, err := range store.Renew(t.Context(), renewals) {
		if err != nil {
			t.Errorf("Renew of claim %d: %v", i, err)
		}
	}
	server.Must("SCRIPT", "FLUSH")
	for i, err := range store.Release(t.Context(), releases) {
		if err != nil {
			t.Errorf("Release of claim %d: %v", i, err)
		}
	}
}

// count is how often the server has run a command.
func count(t *testing.T, server *servers.Redis, command string) int {
	t.Helper()
	return calls(server)[command]
}

// calls is how often the server has run each command, those in scripts included.
func calls(server *servers.Redis) map[string]int {
	all := make(map[string]int)
	text, _ := server.Must("INFO", "commandstats").(string)
	for _, match := range regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`).FindAllStringSubmatch(text, -1) {
		all[match[1]], _ = strconv.Atoi(match[2])
	}
	return all
}
