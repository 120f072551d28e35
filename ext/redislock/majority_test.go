package redislock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	_ "github.com/holdfast-go/holdfast/redlock"
)

// startMajority starts three servers that know nothing of each other. They are
// young, so that their age must not matter unless a test is about that.
func startMajority(tb testing.TB, quarantine string) (nodes []*servers.Redis, url string) {
	var addrs []string
	for range 3 {
		r := servers.StartRedis(tb)
		nodes, addrs = append(nodes, r), append(addrs, r.Addr())
	}
	return nodes, "redlock://" + strings.Join(addrs, ",") + "?quarantine=" + quarantine
}

// ofMajority is the harness of a store on three servers.
func ofMajority(tb testing.TB) drivertest.Harness {
	_, url := startMajority(tb, "0")
	h := opening(url)
	h.Lacks = drivertest.Slots
	return h
}

func TestContractOfAMajority(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, ofMajority(t))
}

func BenchmarkMajority(b *testing.B) { drivertest.Bench(b, ofMajority(b)) }

// A minority may hang or be down, also while locks are held.
func TestMajorityOutlivesAServer(t *testing.T) {
	nodes, url := startMajority(t, "0")
	locks, err := holdfast.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	var last uint64
	round := func(what string) {
		t.Helper()
		for range 100 {
			lock, err := servers.Patient(t.Context(), locks.Lock, "key")
			if err != nil {
				t.Fatalf("with %s: %v", what, err)
			}
			if lock.Fence() <= last {
				t.Errorf("with %s: token %d after %d", what, lock.Fence(), last)
			}
			last = lock.Fence()
			if err := lock.Unlock(); err != nil {
				t.Fatalf("with %s: %v", what, err)
			}
		}
	}
	held, err := servers.Patient(t.Context(), locks.Lock, "held")
	if err != nil {
		t.Fatal(err)
	}
	round("all well")
	nodes[0].Pause()
	round("a server that hangs")
	nodes[0].Resume()
	round("all well again")
	nodes[1].Kill()
	round("a server that is down")
	if err := held.Unlock(); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
}

func TestMajorityWaitsForYoungServers(t *testing.T) {
	_, url := startMajority(t, "1h")
	locks, err := holdfast.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	_, err = locks.TryLock(t.Context(), "key")
	if err == nil || errors.Is(err, holdfast.ErrHeld) || !strings.Contains(err.Error(), "does not count for another") {
		t.Errorf("servers that have just started: %v, want to hear for how long they do not count", err)
	}
}

// A lock that nobody else wants takes one command of each server, and so does
// its release. A few more are allowed, because a request that is long on its way
// takes a second round.
func TestMajorityTakesOneRound(t *testing.T) {
	nodes, url := startMajority(t, "0")
	locks, err := holdfast.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	cycle := func(key string) {
		t.Helper()
		lock, err := servers.Patient(t.Context(), locks.Lock, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
	cycle("first") // The servers learn the scripts.
	const cycles = 100
	sent := func(n *servers.Redis) int { return count(t, n, "evalsha") + count(t, n, "eval") }
	var before []int
	for _, n := range nodes {
		before = append(before, sent(n))
	}
	for i := range cycles {
		cycle(fmt.Sprint("key ", i))
	}
	for i, n := range nodes {
		if got := sent(n) - before[i]; got < cycles || got > 2*cycles+cycles/5 {
			t.Errorf("server %d got %d commands for %d locks, want one for each lock and each release", i+1, got, cycles)
		}
	}
}
