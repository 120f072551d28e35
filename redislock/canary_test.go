package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/redislock"
)

// A liar is a server of one key and another, without a script. It answers an EVALSHA as the
// script that acquires a claim does.
type liar struct {
	mu    sync.Mutex
	last  int64           // token
	holds map[string]bool // by key
	freed map[string]bool // keys that were released
	seen  map[[2]any]bool // keys and connections, since the key was released
	grant func(l *liar, connection int, key string) bool
}

func (l *liar) answer(connection int, words []string) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch strings.ToUpper(words[0]) {
	case "HELLO", "CLUSTER":
		return servers.RedisError("ERR unknown command '" + words[0] + "'")
	case "TIME":
		now := time.Now().UnixMicro()
		return []any{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}
	case "INFO":
		return "redis_version:7.4.0\r\nrun_id:1\r\nliar_version:1.2.3\r\nrole:master\r\n"
	case "EVALSHA", "EVAL":
		return l.script(connection, words[3:], words[2])
	}
	return "OK"
}

func (l *liar) script(connection int, words []string, keys string) any {
	n, _ := strconv.Atoi(keys)
	key, args := words[0], words[n:]
	switch {
	case n > 5: // for several keys
		var none []any
		for range (len(args) - 5) / 2 {
			none = append(none, int64(0))
		}
		return none
	case len(args) == 2: // a release
		l.holds[key], l.freed[key] = false, true
		return int64(1)
	case !l.grant(l, connection, key):
		return []any{int64(0), l.last, int64(1e6)}
	}
	l.holds[key] = true
	l.last++
	return l.last
}

// always grants everything and locks nothing.
func always(*liar, int, string) bool { return true }

// racy keeps claims that come one after the other. Of claims that come at the same time, it grants
// one of each connection.
func racy(l *liar, connection int, key string) bool {
	if !l.freed[key] {
		return !l.holds[key]
	}
	at := [2]any{key, connection}
	first := !l.seen[at]
	l.seen[at] = true
	return first
}

// forgetful keeps claims, and gives old tokens.
func forgetful(l *liar, _ int, key string) bool {
	if !l.holds[key] && l.freed[key] {
		l.last = 0
	}
	return !l.holds[key]
}

// honest keeps claims.
func honest(l *liar, _ int, key string) bool { return !l.holds[key] }

// startLiar starts a liar that does not know the commands of lacks.
func startLiar(t *testing.T, grant func(*liar, int, string) bool, lacks ...string) (url string) {
	t.Helper()
	l := &liar{holds: make(map[string]bool), freed: make(map[string]bool), seen: make(map[[2]any]bool), grant: grant}
	return "redis://" + servers.StartLiar(t, func(connection int, words []string) any {
		if slices.Contains(lacks, words[0]) {
			return servers.RedisError("ERR unknown command '" + words[0] + "'")
		}
		return l.answer(connection, words)
	})
}

// clientOf returns a client of a liar.
func clientOf(addr string) rueidis.Client {
	return must.Get(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, Dialer: net.Dialer{Timeout: patience}, ForceSingleClient: true, DisableCache: true, AlwaysRESP2: true,
	}))
}

// nameless is what a refusal says of a server that does not tell its name in time.
const nameless = "the server does not exclude: "

// refuses expects a server to be refused with these words, and by its name. The name may come late.
func refuses(t *testing.T, url string, want ...string) {
	t.Helper()
	var err error
	servers.Await(t, "a refusal with the name of the server", func() error {
		if err = sessiontest.Refused(t, url); strings.Contains(err.Error(), nameless) {
			return err
		}
		return nil
	})
	for _, words := range want {
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("got the error %v, want an ErrInvalid with %q", err, words)
		}
	}
}

// TestOpenRefusesLiars opens servers that only look like Redis.
func TestOpenRefusesLiars(t *testing.T) {
	t.Parallel()
	const name = "the server, liar 1.2.3, does not exclude: "
	refuses(t, startLiar(t, always), name+"two connections asked for the same lock, and both were granted the lock")
	refuses(t, startLiar(t, racy), name+"of 8 requests at the same time for one lock, 2 were granted", "does not run scripts one after the other")
	refuses(t, startLiar(t, forgetful), name+"the fencing token 1 follows ")
	refuses(t, "redis://"+servers.StartLiar(t, func(_ int, words []string) any {
		if words[0] == "EVALSHA" {
			return "OK" // as a server that takes every command
		}
		return new(liar).answer(0, words)
	}), name+"the reply is not what the script returns")
	silent := startLiar(t, always, "INFO")
	if err := sessiontest.Refused(t, silent); !strings.Contains(err.Error(), nameless) {
		t.Errorf("a server without INFO: %v", err)
	}
	store, err := driver.Open(t.Context(), unhurried(startLiar(t, honest)))
	if err != nil {
		t.Fatalf("a server that keeps claims: %v", err)
	}
	store.Close()
}

// TestOpenRefusesServersWithoutScripts renames the commands, as some services do.
func TestOpenRefusesServersWithoutScripts(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t, `rename-command EVAL ""`, `rename-command EVALSHA ""`)
	refuses(t, r.URL(), "does not exclude: the server has no Lua scripts", "the server, ")
}

// TestOpenRefusesSeveralServers has a balancer spread connections over a primary and a stale
// replica that accepts writes, and over two primaries.
func TestOpenRefusesSeveralServers(t *testing.T) {
	t.Parallel()
	primary, other := servers.StartRedis(t), servers.StartRedis(t)
	refuses(t, "redis://"+servers.StartBalancer(t, primary.Addr(), other.Addr()), "or the address leads to several servers")
	replica := servers.StartReplica(t, primary.Addr())
	replica.Must("CONFIG", "SET", "replica-read-only", "no")
	refuses(t, replica.URL(), "the server is a replica that accepts writes (role:slave)")
	replica.Must("CONFIG", "SET", "replica-read-only", "yes")
	store, err := driver.Open(t.Context(), unhurried(replica.URL()))
	if err != nil {
		t.Fatalf("a replica that may be promoted: %v", err)
	}
	defer store.Close()
	if _, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")}); err == nil || !strings.HasPrefix(err.Error(), "READONLY ") {
		t.Errorf("a replica answers %v, want READONLY", err)
	}
}

// TestOpenRefusesSplitKeys has a proxy send every command to the server of the first key, as
// twemproxy does.
func TestOpenRefusesSplitKeys(t *testing.T) {
	t.Parallel()
	var several [2]func(words ...string) (any, error)
	for i := range several {
		several[i] = servers.StartRedis(t).Dialog()
	}
	proxy := servers.StartLiar(t, func(_ int, words []string) any {
		at := 0
		switch words[0] {
		case "HELLO", "CLUSTER": // A proof has two seconds for all its commands.
			return servers.RedisError("ERR unknown command '" + words[0] + "'")
		case "CLIENT":
			return "OK"
		case "EVAL", "EVALSHA":
			if !strings.HasSuffix(words[3], "floor") { // all locks on one side, or this test would fail by chance
				at = 1
			}
		}
		reply, err := several[at](words...)
		if refused := servers.RedisError(""); errors.As(err, &refused) {
			return refused
		}
		return reply
	})
	refuses(t, "redis://"+proxy, "a proxy spreads keys over several servers")
}

// TestOpenBehindDoubler: a proxy that sends each request twice breaks no promise, see
// TestRequestsSentTwice.
func TestOpenBehindDoubler(t *testing.T) {
	t.Parallel()
	url := unhurried("redis://" + servers.StartDoubler(t, servers.StartRedis(t).Addr()))
	for range 20 {
		store, err := driver.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		store.Close()
	}
}

// TestSecondConnectionHangs leaves time for the lock.
func TestSecondConnectionHangs(t *testing.T) {
	t.Parallel()
	l := &liar{holds: make(map[string]bool), freed: make(map[string]bool), grant: honest}
	addr := servers.StartLiar(t, func(connection int, words []string) any {
		if words[0] == "EVALSHA" {
			l.mu.Lock()
			held := l.holds[words[3]]
			l.mu.Unlock()
			if held && len(words) > 10 { // no release
				<-t.Context().Done()
			}
		}
		return l.answer(connection, words)
	})
	tries := 0
	servers.Until(t, "a grant in what the canary leaves of a call", func() bool { // A pause of this machine may take that.
		client := clientOf(addr)
		defer client.Close()
		store := must.Get(redislock.New(client, nil)) // which has sent no canary
		defer store.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a canary alone takes as long
		defer cancel()
		tries++
		g, err := store.Acquire(ctx, driver.Ask{Claim: exclusive(fmt.Sprint("key", tries), "id")})
		switch {
		case err == nil && !g.OK, errors.Is(err, driver.ErrInvalid):
			t.Fatalf("got %+v, %v; want a grant", g, err)
		case err != nil:
			t.Log(err)
		}
		return g.OK
	})
}

// TestEvidenceStays has a server refused that does not exclude, and then make no second connection:
// a canary that shows nothing is no proof.
func TestEvidenceStays(t *testing.T) {
	t.Parallel()
	l := &liar{holds: make(map[string]bool), freed: make(map[string]bool), grant: always}
	var highest, last atomic.Int64 // connections
	last.Store(math.MaxInt64)
	addr := servers.StartLiar(t, func(connection int, words []string) any {
		if int64(connection) > last.Load() {
			return servers.RedisError("ERR max number of clients reached")
		}
		for known := highest.Load(); int64(connection) > known && !highest.CompareAndSwap(known, int64(connection)); {
			known = highest.Load()
		}
		return l.answer(connection, words)
	})
	client := clientOf(addr)
	defer client.Close()
	store := must.Get(redislock.New(client, nil))
	defer store.Close()
	var err error
	refused := func() bool {
		var g driver.Grant
		g, err = store.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")})
		if err == nil && last.Load() < math.MaxInt64 {
			t.Fatalf("granted %+v after evidence", g)
		}
		return errors.Is(err, driver.ErrInvalid)
	}
	servers.Until(t, "a refusal", func() bool {
		if refused() {
			return true
		}
		store = must.Get(redislock.New(client, nil)) // A pause of this machine may cut off a canary.
		t.Cleanup(func() { store.Close() })
		return false
	})
	last.Store(highest.Load())
	if !refused() {
		t.Errorf("without a second connection: %v; want the refusal", err)
	}
}

// TestMissingCommandInName is an error of the network whose words occur in the error of a server
// without scripts.
func TestMissingCommandInName(t *testing.T) {
	t.Parallel()
	l := &liar{holds: make(map[string]bool)}
	addr := servers.StartLiar(t, func(connection int, words []string) any {
		if words[0] == "EVALSHA" {
			return servers.RedisError("ERR unknown backend evaluation:6379")
		}
		return l.answer(connection, words)
	})
	store, err := driver.Open(t.Context(), unhurried("redis://"+addr))
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
}

// TestProvesOnce has one process open two Stores: the second counts the keys of no canary.
func TestProvesOnce(t *testing.T) {
	t.Parallel()
	r, _ := openProven(t)
	scripts := func() string {
		for line := range strings.Lines(r.Must("INFO", "commandstats").(string)) {
			if name, rest, _ := strings.Cut(line, ":"); name == "cmdstat_evalsha" {
				calls, _, _ := strings.Cut(rest, ",")
				return calls
			}
		}
		return ""
	}
	once := scripts()
	openStore(t, r.URL())
	if twice := scripts(); once == "" || twice != once {
		t.Errorf("the server counts %q after one Store and %q after two", once, twice)
	}
	other := servers.StartBalancer(t, r.Addr())
	until(t, "a canary at another address of the server", func() bool { // A pause of this machine may cut off a canary.
		openStore(t, "redis://"+other)
		return scripts() != once
	})
}

// TestProvesTheConnection: a proof holds for a connection, and another may lead to another server.
func TestProvesTheConnection(t *testing.T) {
	t.Parallel()
	r, store := openProven(t)
	for i := range 64 {
		if g, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive(fmt.Sprint("key", i), "id")}); err != nil || !g.OK {
			t.Fatal(g, err)
		}
	}
	until(t, "the store to have one connection", func() bool {
		return strings.Count(r.Must("CLIENT", "LIST").(string), "name=holdfast ") == 1
	})
}

// TestCanaryLeavesNothing but the highest token.
func TestCanaryLeavesNothing(t *testing.T) {
	t.Parallel()
	r, _ := openProven(t)
	if keys := r.Must("KEYS", "*"); len(keys.([]any)) != 1 {
		t.Errorf("the canary left %q, want the floor only", keys)
	}
}

// BenchmarkOpen includes the canary.
func BenchmarkOpen(b *testing.B) {
	url := servers.StartRedis(b).URL()
	for b.Loop() {
		opening(url).Open(b).Close()
	}
}
