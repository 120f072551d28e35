package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
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
	nodes, url := startMajority(tb, "0")
	h := opening(url)
	h.Lacks = drivertest.Slots | drivertest.Crowd // see package redlock
	h.Linked = func(t testing.TB) (driver.Store, drivertest.Link) {
		var all links
		through := url
		for _, r := range nodes {
			p := servers.StartProxy(t, r.Addr())
			all, through = append(all, p), strings.Replace(through, r.Addr(), p.Addr(), 1)
		}
		return opening(through).Open(t), all
	}
	return h
}

// links are one to each of several servers, all in the same state.
type links []*servers.Proxy

func (ls links) Blackhole(on bool) { ls.each(func(p *servers.Proxy) { p.Blackhole(on) }) }
func (ls links) Refuse(on bool)    { ls.each(func(p *servers.Proxy) { p.Refuse(on) }) }
func (ls links) Reset()            { ls.each((*servers.Proxy).Reset) }

func (ls links) each(do func(*servers.Proxy)) {
	for _, p := range ls {
		do(p)
	}
}

func TestContractOfAMajority(t *testing.T) {
	repeated(t)
	t.Parallel()
	drivertest.Run(t, ofMajority(t))
}

func BenchmarkMajority(b *testing.B) { drivertest.Bench(b, ofMajority(b)) }

func openMajority(t *testing.T, url string) *holdfast.Locker {
	t.Helper()
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, nil) })
	t.Cleanup(func() { locks.Close() })
	return locks
}

// A minority may hang or be down, also while locks are held.
func TestMajorityOutlivesAServer(t *testing.T) {
	nodes, url := startMajority(t, "0")
	locks := openMajority(t, url)
	var last uint64
	round := func(what string) {
		t.Helper()
		for range 30 {
			lock, err := servers.Patient(t.Context(), locks.Lock, "key")
			if err != nil {
				t.Fatalf("with %s: %v", what, err)
			}
			if lock.Fence() <= last {
				t.Errorf("with %s: token %d after %d", what, lock.Fence(), last)
			}
			last = lock.Fence()
			if err := unlock(lock); err != nil {
				t.Fatalf("with %s: %v", what, err)
			}
		}
	}
	held, err := servers.Patient(t.Context(), locks.Lock, "held", holdfast.TTL(time.Minute)) // The rounds may take long.
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
	if err := unlock(held); err != nil {
		t.Errorf("the lock that was held all the time: %v", err)
	}
}

func TestMajorityWaitsForYoungServers(t *testing.T) {
	_, url := startMajority(t, "1h")
	locks := openMajority(t, url)
	var err error
	tries := 0
	until(t, "an answer of each server in time", func() bool {
		tries++ // The claim before may still be at a server that was slow.
		_, err = locks.TryLock(t.Context(), fmt.Sprint("key", tries))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	})
	if err == nil || errors.Is(err, holdfast.ErrHeld) || !strings.Contains(err.Error(), "ago; it counts in 5") {
		t.Errorf("servers that have just started: %v, want to hear for how long they do not count", err)
	}
}
