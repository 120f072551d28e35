//go:build unix

// Tests of package elect with processes that are killed, paused and cut off.
package elections

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/servers"
)

// patience bounds every wait. A takeover takes the leader's TTL, a twentieth of patience.
const patience = time.Minute

// An election is the processes that stand for one job.
type election struct {
	*testing.T
	log        *fencedLog
	url        string // of the store, with a %s for the address
	server     string // its address
	ttl        time.Duration
	candidates []*candidate
	hired      int
}

// befall does to a leader what may happen to it. The function that it returns ends
// that, once another leads.
var befall = []struct {
	what string
	to   func(e *election, c *candidate) (end func())
}{
	{"killed", func(e *election, c *candidate) func() {
		e.must(c.Process.Kill())
		return func() {
			<-c.read
			_ = c.Wait()
			e.candidates[slices.Index(e.candidates, c)] = e.hire()
		}
	}},
	{"paused", func(e *election, c *candidate) func() {
		e.must(c.Process.Signal(syscall.SIGSTOP))
		return func() { e.must(c.Process.Signal(syscall.SIGCONT)) }
	}},
	{"cut off", func(e *election, c *candidate) func() {
		c.proxy.Blackhole(true)
		return func() { c.proxy.Blackhole(false) }
	}},
}

// The leader of five is killed, paused and cut off in turn. The log's accepted and refused
// writes show that there never were two leaders, and that every fault brings a new leader.
// With -short, each fault comes once or twice.
func TestLeaderIsReplaced(t *testing.T) {
	rounds := 1
	if !testing.Short() {
		rounds = 3
	}
	t.Run("Redis", func(t *testing.T) {
		t.Parallel()
		redis := servers.StartRedis(t)
		replaceLeaders(&election{T: t, url: "redis://%s", server: redis.Addr(), ttl: time.Second}, rounds*2*len(befall))
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		etcd := servers.StartEtcd(t)
		replaceLeaders(&election{T: t, url: "etcd://%s", server: etcd.Direct(), ttl: 2 * time.Second}, rounds*len(befall))
	})
}

func replaceLeaders(e *election, faults int) {
	e.log = newLog()
	for range 5 {
		e.candidates = append(e.candidates, e.hire())
	}
	took := make(map[string][]time.Duration)
	for i := range faults {
		fault := befall[i%len(befall)]
		leader := e.await("a leader", 0)
		began := time.Now()
		end := fault.to(e, e.candidate(leader.who))
		next := e.await("the next leader after one was "+fault.what, leader.token)
		took[fault.what] = append(took[fault.what], next.at.Sub(began))
		end()
	}
	for _, c := range e.candidates {
		c.finish()
	}
	e.log.check(e.T)
	for what, times := range took {
		slices.Sort(times)
		e.Logf("with a TTL of %v, after the leader was %s, another led within %v", e.ttl, what, times)
	}
}

// await returns the last write with a token above this one.
func (e *election) await(what string, token uint64) entry {
	e.Helper()
	late := time.After(patience)
	for {
		last, changed := e.log.last()
		if last.token > token {
			return last
		}
		select {
		case <-changed:
		case <-late:
			e.Fatalf("waited for %v: %s", patience, what)
		}
	}
}

func (e *election) candidate(name string) *candidate {
	e.Helper()
	i := slices.IndexFunc(e.candidates, func(c *candidate) bool { return c.name == name })
	if i < 0 {
		e.Fatalf("%s leads, who is not there", name)
	}
	return e.candidates[i]
}

func (e *election) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// hire starts another candidate, with a network of its own, and returns when it
// campaigns.
func (e *election) hire() *candidate {
	e.Helper()
	e.hired++
	proxy := servers.StartProxy(e, e.server)
	return e.start(fmt.Sprint("candidate ", e.hired), proxy)
}
