package verify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/fileurl"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// ErrEngine reports that no servers have the name, or that their number is wrong.
var ErrEngine = errors.New("wrong servers")

// An engine is the servers of a store. The run has started the servers, and may harm the
// servers.
type engine struct {
	url     string
	nodes   []node
	version string // of the servers, with their name

	// roles returns the current roles of the nodes, as reported by the nodes. roles is nil
	// if no node follows a leader, or if every node is asked for locks alike.
	roles func() []string

	// More faults that the servers can suffer; nil if the starter rules the fault out.
	cut        func(n int, on bool)          // a server off from the rest
	failover   func(n int)                   // to a second server, and then ends the cut
	switchOver func(n int)                   // as failover, but in an orderly way
	step       func(n int, by time.Duration) // the clock of a server, away from the right time
	flush      func(n int)                   // everything that a server has in memory

	// left returns the remains in the servers after every client has gone, except for
	// permanent data; nil if no check exists. Data that expires does so within bound.
	left func(bound time.Duration) []string

	// evict lets a server run out of memory until gone returns true for an evicted lock, or
	// ctx ends. The names of locks end with the keys.
	evict func(ctx context.Context, n int, gone func(lock string) bool)
}

// A node is a server.
type node interface {
	Kill()
	Restart()
	Pause()
	Resume()
}

// A starter knows how to start an engine.
type starter struct {
	name    string         // the value of --start
	like    string         // a URL of the same kind as the engine's
	servers int            // 0 for a store without servers
	more    []plan.Nemesis // possible faults besides the faults of every server
	start   func(r *room, n int) *engine
}

var starters = []starter{
	{"file", "file:", 0, []plan.Nemesis{plan.WorkerClock}, func(r *room, _ int) *engine {
		return &engine{url: fileurl.Of("file", filepath.Join(r.folder, "locks"))}
	}},
	{"sqlite", "sqlite:", 0, nil, func(r *room, _ int) *engine {
		path := filepath.Join(r.folder, "locks.db")
		return &engine{url: fileurl.Of("sqlite", path), left: leftInSQLite(r, path)}
	}},
	{"redis", "redis:", 1, []plan.Nemesis{plan.Clock, plan.Evict, plan.Flush}, redisWith(durable)},
	{"redis:2", "redis:", 0, []plan.Nemesis{plan.Failover, plan.StaleFailover}, startPair},
	{"redis-sentinel", "redis://127.0.0.1?master=" + servers.MasterName, 6, []plan.Nemesis{plan.Failover, plan.SwitchOver}, startSentinel},
	{"redis-cluster", "redis://127.0.0.1,127.0.0.1", 6, []plan.Nemesis{plan.Failover, plan.SwitchOver}, startCluster},
	{"redis:3", "redlock://127.0.0.1", 3, []plan.Nemesis{plan.WorkerClock, plan.Clock, plan.Evict, plan.Flush}, redisWith(forgetful)},
	{"redis:5", "redlock://127.0.0.1", 5, []plan.Nemesis{plan.WorkerClock, plan.Clock, plan.Evict, plan.Flush}, redisWith(forgetful)},
	{"redis:7", "redlock://127.0.0.1", 7, []plan.Nemesis{plan.WorkerClock, plan.Clock, plan.Evict, plan.Flush}, redisWith(durable)},
	{"memcached", "memcached:", 1, []plan.Nemesis{plan.Evict, plan.Flush}, startMemcached},
	{"postgres", "postgres://127.0.0.1", 1, []plan.Nemesis{plan.Clock}, func(r *room, _ int) *engine {
		p := servers.StartPostgres(r.clocked(), "max_connections = 500")
		return &engine{url: p.URL(), nodes: []node{p}, version: p.Version(), step: r.step, left: leftInPostgres(p)}
	}},
	{"postgres:2", "postgres://127.0.0.1", 0, []plan.Nemesis{plan.Failover}, startStandby},
	{"postgres-session", "postgres://127.0.0.1?mode=session", 1, nil, func(r *room, _ int) *engine {
		p := servers.StartPostgres(r, "max_connections = 500")
		return &engine{url: withParameters(p.URL(), "mode=session"), nodes: []node{p}, version: p.Version(), left: leftInPostgres(p)}
	}},
	{"mariadb", "mysql://127.0.0.1", 1, []plan.Nemesis{plan.Clock}, func(r *room, _ int) *engine {
		m := servers.StartMariaDB(r.clocked(), "max_connections = 500")
		return &engine{url: m.URL(), nodes: []node{m}, version: m.Version(), step: r.forward, left: leftInMariaDB(m)}
	}},
	{"mariadb-session", "mysql://127.0.0.1?mode=session", 1, nil, func(r *room, _ int) *engine {
		m := servers.StartMariaDB(r, "max_connections = 500")
		return &engine{url: withParameters(m.URL(), "mode=session"), nodes: []node{m}, version: m.Version(), left: leftInMariaDB(m)}
	}},
	{"etcd", "etcd:", 1, nil, startEtcd},
	{"etcd:3", "etcd:", 3, []plan.Nemesis{plan.CutStore}, startEtcd},
	{"nats", "nats:", 1, nil, startNATS},
	{"nats:3", "nats:", 3, []plan.Nemesis{plan.CutStore}, startNATS},
	{"s3", "s3://locks?endpoint=http://127.0.0.1", 1, nil, startS3},
	{"gcs", "gs://locks?endpoint=http://127.0.0.1", 1, nil, startGCS},
	{"dynamodb", "dynamodb://locks?endpoint=http://127.0.0.1", 1, nil, startDynamoDB},
	{"azblob", "azblob://holdfast/locks?endpoint=http://127.0.0.1", 1, nil, startAzurite},
	{"zookeeper", "zk:", 1, nil, startZooKeeper},
	{"zookeeper:3", "zk:", 3, []plan.Nemesis{plan.CutStore}, startZooKeeper},
}

// withParameters returns a URL with more parameters.
func withParameters(at, query string) string {
	if strings.Contains(at, "?") {
		return at + "&" + query
	}
	return at + "?" + query
}

// with returns the starter of an engine whose URL has the parameters of query.
func (s starter) with(query string) starter {
	plain := s.start
	s.start = func(r *room, n int) *engine {
		e := plain(r, n)
		e.url = withParameters(e.url, query)
		return e
	}
	s.like = withParameters(s.like, query)
	s.more = slices.DeleteFunc(slices.Clone(s.more), func(n plan.Nemesis) bool {
		return n == plan.WorkerClock // whose workers do not read the parameters
	})
	return s
}

// A room is where servers are started.
type room struct {
	servers.TB
	Config
	folder string
	clocks []*servers.Clock
	ahead  time.Duration // of a clock that only goes forward
}

// clocked gives the next server a separate clock if the run sets clocks. A program with a
// settable clock does not run exactly as it does for users.
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

// forward sets the clock of a server that aborts if the clock goes back. The clock always
// moves further ahead.
func (r *room) forward(n int, by time.Duration) {
	r.ahead += by.Abs()
	r.step(n, r.ahead)
}

// With the settings durable, Redis keeps acknowledged writes. With forgetful, Redis loses
// acknowledged writes when the server ends.
var (
	durable   = []string{"appendonly yes", "appendfsync always", "maxmemory-policy noeviction"}
	forgetful = []string{"maxmemory-policy noeviction"}
)

// majority returns a majority of n servers, from first on. Data that the majority has lost
// is lost.
func majority(first, n int) (some []int) {
	for i := range n/2 + 1 {
		some = append(some, (first+i)%n)
	}
	return some
}

// redisWith starts servers of Redis with the given settings.
func redisWith(settings []string) func(*room, int) *engine {
	return func(r *room, n int) *engine { return startRedis(r, n, settings) }
}

// startRedis starts one Redis, or several for Redlock.
func startRedis(r *room, n int, settings []string) *engine {
	var all []*servers.Redis
	e := &engine{
		step: func(first int, by time.Duration) {
			for _, n := range majority(first, n) {
				r.step(n, by)
			}
		},
		flush: func(first int) {
			for _, n := range majority(first, n) {
				all[n].Must("FLUSHALL")
			}
		},
	}
	e.evict = func(ctx context.Context, n int, gone func(string) bool) {
		all[n].Press(ctx, func(key string) bool { return strings.Contains(key, ":held:") && gone(key) })
	}
	var hosts []string
	for range n {
		one := servers.StartRedis(r.clocked(), settings...)
		all, e.nodes, hosts = append(all, one), append(e.nodes, one), append(hosts, one.Addr())
		e.url, e.version = one.URL(), one.Version()
	}
	e.left = leftInRedis(all...)
	if n > 1 {
		e.url = fmt.Sprintf("redlock://%s?quarantine=%s", strings.Join(hosts, ","), r.TTL)
	}
	return e
}

// startMemcached starts a Memcached. If the Memcached is to run out of memory, it gets
// hardly any.
func startMemcached(r *room, _ int) *engine {
	var options []string
	if slices.Contains(r.Nemeses, plan.Evict) {
		options = []string{"-m", "1", "-I", "512k"}
	}
	m := servers.StartMemcached(r, options...)
	return &engine{
		url: m.URL(), nodes: []node{m}, version: m.Version(),
		left:  leftInMemcached(m),
		flush: func(int) { m.Must("flush_all", "OK") },
		evict: func(ctx context.Context, _ int, gone func(string) bool) { m.Press(ctx, gone) },
	}
}

func startEtcd(r *room, n int) *engine {
	if n == 1 {
		e := servers.StartEtcd(r)
		return &engine{url: e.URL(), nodes: []node{e}, version: e.Version(), left: leftInEtcd(e)}
	}
	c := servers.StartEtcdCluster(r)
	e := &engine{url: c.URL(), cut: func(n int, on bool) { c.Nodes[n].CutOff(on) }, left: leftInEtcd(c.Nodes...), version: c.Nodes[0].Version()}
	for _, member := range c.Nodes {
		e.nodes = append(e.nodes, member)
	}
	return e
}

func startNATS(r *room, n int) *engine {
	if n == 1 {
		s := servers.StartNATS(r)
		return &engine{url: s.URL() + "?synced=true", nodes: []node{s}, version: s.Version()}
	}
	c := servers.StartNATSCluster(r)
	e := &engine{url: c.URL() + "?replicas=3&synced=true", cut: func(n int, on bool) { c.Nodes[n].CutOff(on) }, version: c.Nodes[0].Version()}
	for _, member := range c.Nodes {
		e.nodes = append(e.nodes, member)
	}
	return e
}

func startS3(r *room, _ int) *engine {
	s := servers.StartS3(r)
	return &engine{url: withParameters(s.URL(), "look=100ms"), nodes: []node{s}, version: s.Version()}
}

func startGCS(r *room, _ int) *engine {
	s := servers.StartGCS(r)
	return &engine{url: withParameters(s.URL(), "look=100ms"), nodes: []node{s}, version: s.Version()}
}

func startDynamoDB(r *room, _ int) *engine {
	d := servers.StartDynamoDB(r)
	return &engine{url: withParameters(d.URL(), "look=100ms"), nodes: []node{d}, version: d.Version()}
}

func startAzurite(r *room, _ int) *engine {
	a := servers.StartAzurite(r)
	return &engine{url: withParameters(a.URL(), "look=100ms"), nodes: []node{a}, version: a.Version()}
}

// unsynced makes ZooKeeper leave the disk to the system, which outlives every fault of a run:
// beside other work, a disk may take longer than a session lasts.
const unsynced = "forceSync=no"

func startZooKeeper(r *room, n int) *engine {
	if n == 1 {
		z := servers.StartZooKeeper(r, unsynced)
		return &engine{url: z.URL(), nodes: []node{z}, version: z.Version(), left: leftInZooKeeper(z)}
	}
	c := servers.StartEnsemble(r, unsynced)
	e := &engine{url: c.URL(), cut: func(n int, on bool) { c.CutOff(c.Nodes[n], on) }, left: leftInZooKeeper(c.Nodes...), version: c.Nodes[0].Version()}
	for _, z := range c.Nodes {
		e.nodes = append(e.nodes, z)
	}
	return e
}

// Engines returns the values that --start takes.
func Engines() (names []string) {
	for _, s := range starters {
		names = append(names, s.name)
	}
	return names
}

// starterOf finds the starter of a name. URL parameters may follow the name.
func starterOf(text string) (starter, error) {
	name, query, more := strings.Cut(text, "?")
	if strings.Contains(name, "://") { // may hold a password, which must not be shown
		return starter{}, fmt.Errorf("%w: --start takes no URL, which is for --store (possible: %s)", ErrEngine, strings.Join(Engines(), ", "))
	}
	i := slices.IndexFunc(starters, func(s starter) bool { return s.name == name })
	if i < 0 {
		return starter{}, fmt.Errorf("%w: there is no %q to start (possible: %s)", ErrEngine, name, strings.Join(Engines(), ", "))
	}
	if more {
		return starters[i].with(query), nil
	}
	return starters[i], nil
}

// Faults returns the nemeses that can befall an engine, and the subset whose harm the
// engine promises to stand.
func Faults(engine string) (can, stands []plan.Nemesis, err error) {
	s, err := starterOf(engine)
	if err != nil {
		return nil, nil, err
	}
	like, err := url.Parse(s.like)
	if err != nil {
		return nil, nil, err
	}
	can, stands = (&target{starter: s, url: like}).faults()
	return can, stands, nil
}

// startEngine starts the servers of an engine.
func (c Config) startEngine(h *servers.Host, s starter, folder string) (e *engine, err error) {
	if err := h.Try(func() { e = s.start(&room{TB: h, Config: c, folder: folder}, s.servers) }); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	return e, nil
}

// prepare creates the objects that the store needs for the first lock.
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
