package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// ErrEngine says that there are no servers of that name, or not so many of them.
var ErrEngine = errors.New("wrong servers")

// An engine is the servers of a store that the run has started itself, and may
// harm.
type engine struct {
	url   string
	nodes []node

	// What can befall the servers besides; nil if it cannot.
	cut      func(n int, on bool)          // one of them off from the others
	failover func()                        // to another server
	step     func(n int, by time.Duration) // its clock, away from the right time
	evict    func(n int)                   // all that it has in memory
}

// A node is one server.
type node interface {
	Kill()
	Restart()
	Pause()
	Resume()
}

// A starter knows how to start an engine.
type starter struct {
	name   string
	counts []int // of servers that it can have; the first is the default
	start  func(r *room, n int) *engine
}

var starters = []starter{
	{"file", []int{1}, func(r *room, _ int) *engine {
		return &engine{url: fileURL(filepath.Join(r.folder, "locks"))}
	}},
	{"sqlite", []int{1}, func(r *room, _ int) *engine {
		return &engine{url: "sqlite://" + filepath.ToSlash(filepath.Join(r.folder, "locks.db"))}
	}},
	{"redis", []int{1, 2, 3, 5, 7}, startRedis},
	{"memcached", []int{1}, func(r *room, _ int) *engine {
		m := servers.StartMemcached(r)
		return &engine{url: m.URL(), nodes: []node{m}, evict: func(int) { m.Must("flush_all", "OK") }}
	}},
	{"postgres", []int{1}, func(r *room, _ int) *engine {
		p := servers.StartPostgres(r.clocked(), "max_connections = 500")
		return &engine{url: p.URL(), nodes: []node{p}, step: r.step}
	}},
	{"postgres-session", []int{1}, func(r *room, _ int) *engine {
		p := servers.StartPostgres(r, "max_connections = 500")
		return &engine{url: inSessions(p.URL()), nodes: []node{p}}
	}},
	{"mariadb", []int{1}, func(r *room, _ int) *engine {
		m := servers.StartMariaDB(r, "max_connections = 500") // aborts if its clock goes back
		return &engine{url: m.URL(), nodes: []node{m}}
	}},
	{"mariadb-session", []int{1}, func(r *room, _ int) *engine {
		m := servers.StartMariaDB(r, "max_connections = 500")
		return &engine{url: inSessions(m.URL()), nodes: []node{m}}
	}},
	{"etcd", []int{1, 3}, startEtcd},
	{"zookeeper", []int{1, 3}, startZooKeeper},
}

// inSessions returns the URL of a database for locks in its sessions.
func inSessions(at string) string {
	if strings.Contains(at, "?") {
		return at + "&mode=session"
	}
	return at + "?mode=session"
}

// A room is where servers are started.
type room struct {
	servers.TB
	Config
	folder string
	clocks []*servers.Clock
}

// clocked gives the next server a clock of its own, if that is to be set. A
// program whose clock may be set does not run quite as users have it.
func (r *room) clocked() servers.TB {
	if !slices.Contains(r.Nemeses, plan.Clock) {
		return r.TB
	}
	c := servers.StartClock(r.TB)
	r.clocks = append(r.clocks, c)
	return c
}

// step sets the clock of a server.
func (r *room) step(n int, by time.Duration) { r.clocks[n].Step(by) }

// durable are the settings with which Redis keeps what it has acknowledged.
var durable = []string{"appendonly yes", "appendfsync always", "maxmemory-policy noeviction"}

// startRedis starts one Redis, one with a replica, or several for Redlock.
func startRedis(r *room, n int) *engine {
	if n == 2 {
		return startPair(r)
	}
	var all []*servers.Redis
	e := &engine{step: r.step, evict: func(n int) { all[n].Must("FLUSHALL") }}
	var hosts []string
	for range n {
		one := servers.StartRedis(r.clocked(), durable...)
		all, e.nodes, hosts = append(all, one), append(e.nodes, one), append(hosts, one.Addr())
		e.url = one.URL()
	}
	if n > 1 {
		e.url = fmt.Sprintf("redlock://%s?quarantine=%s", strings.Join(hosts, ","), r.TTL)
	}
	return e
}

// startPair starts a Redis and a replica of it, behind an address that always
// leads to the one that takes writes.
func startPair(r *room) *engine {
	primary := servers.StartRedis(r, durable...)
	replica := servers.StartReplica(r, primary.Addr(), durable...)
	front := servers.StartProxy(r, primary.Addr())
	return &engine{
		url: "redis://" + front.Addr(),
		failover: func() {
			primary.Kill()
			replica.Promote()
			front.Redirect(replica.Addr())
			primary.Restart()
			primary, replica = replica, primary
			replica.Follow(primary.Addr())
		},
	}
}

func startEtcd(r *room, n int) *engine {
	if n == 1 {
		e := servers.StartEtcd(r)
		return &engine{url: e.URL(), nodes: []node{e}}
	}
	c := servers.StartEtcdCluster(r)
	e := &engine{url: c.URL(), cut: func(n int, on bool) { c.Nodes[n].CutOff(on) }}
	for _, member := range c.Nodes {
		e.nodes = append(e.nodes, member)
	}
	return e
}

func startZooKeeper(r *room, n int) *engine {
	if n == 1 {
		z := servers.StartZooKeeper(r)
		return &engine{url: z.URL(), nodes: []node{z}}
	}
	c := servers.StartEnsemble(r)
	e := &engine{url: c.URL(), cut: func(n int, on bool) { c.CutOff(c.Nodes[n], on) }}
	for _, z := range c.Nodes {
		e.nodes = append(e.nodes, z)
	}
	return e
}

// Engines lists what --start takes.
func Engines() string {
	var all []string
	for _, s := range starters {
		name := s.name
		for _, n := range s.counts[1:] {
			name += fmt.Sprintf(", %s:%d", s.name, n)
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// parseEngine reads a name, with how many servers there are to be.
func parseEngine(text string) (s starter, n int, err error) {
	name, count, many := strings.Cut(text, ":")
	i := slices.IndexFunc(starters, func(s starter) bool { return s.name == name })
	if i < 0 {
		return s, 0, fmt.Errorf("%w: there is no %q to start (possible: %s)", ErrEngine, text, Engines())
	}
	s = starters[i]
	n = s.counts[0]
	if many {
		n, err = strconv.Atoi(count)
	}
	if err != nil || !slices.Contains(s.counts, n) {
		return s, 0, fmt.Errorf("%w: cannot start %q (possible: %s)", ErrEngine, text, Engines())
	}
	return s, n, nil
}

// startEngine starts the servers that a text names.
func (c Config) startEngine(h *servers.Host, text, folder string) (e *engine, err error) {
	s, n, err := parseEngine(text)
	if err != nil {
		return nil, err
	}
	if err := h.Try(func() { e = s.start(&room{TB: h, Config: c, folder: folder}, n) }); err != nil {
		return nil, fmt.Errorf("start %s: %w", text, err)
	}
	return e, nil
}

// prepare makes what the store needs for its first lock.
func (e *engine) prepare(ctx context.Context) error {
	store, err := driver.Open(ctx, e.url)
	if err != nil {
		return err
	}
	if creator, ok := store.(driver.Creator); ok {
		err = creator.Create(ctx)
	}
	return errors.Join(err, store.Close())
}
