package redisonce_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/once/oncetest"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/redisonce"
)

var shared *servers.Redis

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartRedis(tb) }))
}

// empty returns the server of all tests without data and scripts. Tests that run in
// parallel start only after all other tests have ended.
func empty() *servers.Redis {
	shared.Must("FLUSHALL", "SYNC")
	shared.FlushScripts()
	return shared
}

// connect returns a client with one connection to a server. With more, a command may
// come to one that is not open yet, and whose greeting gets lost in its place. Servers that
// a busy machine does not run have a minute to answer.
func connect(t testing.TB, addrs ...string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: addrs, DisableCache: true, PipelineMultiplex: -1,
		Dialer: net.Dialer{Timeout: time.Minute}, ConnWriteTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestContract(t *testing.T) {
	t.Parallel()
	server := empty()
	oncetest.Run(t, oncetest.Harness{Open: func(t testing.TB) once.Records {
		return redisonce.New(connect(t, server.Addr()), nil)
	}})
	// The keys of the suite expire by themselves.
	keys := server.Must("KEYS", "*").([]any)
	for _, key := range keys {
		name := fmt.Sprint(key)
		if left := server.Must("PTTL", name); fmt.Sprint(left) == "-1" || !strings.HasPrefix(name, redisonce.DefaultPrefix) {
			t.Errorf("%q stays forever, or is not ours", name)
		}
	}
	if len(keys) == 0 {
		t.Error("the suite has left nothing")
	}
}

func TestContractInACluster(t *testing.T) {
	t.Parallel()
	cluster := servers.StartCluster(t).Calm()
	oncetest.Run(t, oncetest.Harness{Open: func(t testing.TB) once.Records {
		return redisonce.New(connect(t, cluster.Addrs()...), &redisonce.Options{Prefix: "{app}:"})
	}})
}

// A server that has forgotten the scripts gets them again.
func TestScriptsAreForgotten(t *testing.T) {
	server := empty()
	records := redisonce.New(connect(t, server.Addr()), &redisonce.Options{Prefix: "p:"})
	for token := range uint64(3) {
		server.FlushScripts()
		if r, err := records.Begin(t.Context(), "key", token+1, "", time.Nanosecond+time.Hour); err != nil || r.Token != token+1 {
			t.Fatal(r, err)
		}
		server.FlushScripts()
		if err := records.Finish(t.Context(), "key", token+1, []byte("result"), time.Hour); err != nil {
			t.Fatal(err)
		}
		server.FlushScripts()
		if err := records.Forget(t.Context(), "key", token+1); err != nil {
			t.Fatal(err)
		}
	}
	if left := server.Must("PTTL", "p:key").(int64); left < 3_000_000 || left > 3_600_001 {
		t.Errorf("the record lives for another %d ms, want an hour", left)
	}
}

// Each call is one request.
func TestCallsAreOneRequest(t *testing.T) {
	server := empty()
	records := redisonce.New(connect(t, server.Addr()), nil)
	calls := func(token uint64) {
		_, loaded := records.Load(t.Context(), "key")
		_, begun := records.Begin(t.Context(), "key", token, "", time.Hour)
		forgotten := records.Forget(t.Context(), "key", token)
		for _, err := range []error{loaded, begun, forgotten} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	calls(1) // with the scripts
	server.Must("CONFIG", "RESETSTAT")
	calls(2)
	stats := fmt.Sprint(server.Must("INFO", "commandstats"))
	if strings.Count(stats, "cmdstat_evalsha:calls=2,") != 1 || strings.Contains(stats, "cmdstat_eval:") {
		t.Errorf("want two scripts by their names, and no other: %s", stats)
	}
}

// A Load whose connection breaks is sent again: it changes nothing.
func TestLoadIsRepeated(t *testing.T) {
	server := empty()
	records := redisonce.New(connect(t, server.Addr()), nil)
	for range 3 {
		if _, err := records.Load(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		server.Must("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	}
}

func TestForeignKey(t *testing.T) {
	server := empty()
	records := redisonce.New(connect(t, server.Addr()), &redisonce.Options{Prefix: "p:"})
	server.Must("HSET", "p:hash", "state", "9", "token", "x")
	server.Must("SET", "p:text", "hello")
	for key, want := range map[string]string{"hash": "no record", "text": "WRONGTYPE"} {
		_, loaded := records.Load(t.Context(), key)
		if loaded == nil || !strings.Contains(loaded.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", key, loaded, want)
		}
	}
}

// TestRefused fills the memory of a server. The error says what to do, and tells nothing
// of scripts.
func TestRefused(t *testing.T) {
	server := empty()
	records := redisonce.New(connect(t, server.Addr()), nil)
	server.Must("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
	defer server.Must("CONFIG", "SET", "maxmemory", "0")
	for range 2 { // by its text, and by its name
		_, err := records.Begin(t.Context(), "key", 1, "", time.Hour)
		if !errors.Is(err, redislock.ErrOOM) || !strings.Contains(err.Error(), "raise maxmemory") || internals.MatchString(err.Error()) {
			t.Errorf("%v, want ErrOOM that says what to do", err)
		}
	}
}

var internals = regexp.MustCompile(`[0-9a-f]{40}|user_script`)

// The request of a Finish is lost, or its answer. Do asks again, and nothing runs
// twice.
func TestFinishIsLost(t *testing.T) {
	server := empty()
	proxy := servers.StartProxy(t, server.Addr())
	near, far := redisonce.New(connect(t, server.Addr()), nil), redisonce.New(connect(t, proxy.Addr()), nil)
	locks := must.Get(holdfast.New(memlock.New(), nil))
	defer locks.Close()
	// The first one teaches the server the scripts. With the answer to it the word
	// would be lost that the script is unknown, and nothing done.
	if _, err := (once.Runner{Locks: locks, Records: near}).Do(t.Context(), "scripts", func(context.Context) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	for name, direction := range map[string]*servers.Direction{"request": proxy.Requests, "answer": proxy.Replies} {
		before, runs := direction.Dropped(), 0
		done := make(chan error, 1)
		go func() {
			result, err := once.Runner{Locks: locks, Records: far}.Do(t.Context(), name, func(context.Context) ([]byte, error) {
				runs++
				direction.Drop(true)
				return []byte("result"), nil
			})
			if err == nil && string(result) != "result" {
				err = fmt.Errorf("result %q", result)
			}
			done <- err
		}()
		want := map[string]once.State{"request": once.Begun, "answer": once.Done}[name]
		servers.Until(t, "the "+name+" to be lost", func() bool {
			r, err := near.Load(t.Context(), name)
			return err == nil && r.State == want && direction.Dropped() > before
		})
		direction.Drop(false)
		if err := <-done; err != nil || runs != 1 {
			t.Errorf("the %s was lost: %v after %d runs", name, err, runs)
		}
		if r, err := near.Load(t.Context(), name); err != nil || r.State != once.Done {
			t.Errorf("the state is %d, %v", r.State, err)
		}
	}
}
