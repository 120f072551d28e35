package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// ErrEngine says that there are no servers of that name, or not so many of them.
var ErrEngine = errors.New("wrong servers")

// An engine is the servers of a store that the run has started itself, and may
// harm.
type engine struct {
	url   string
	nodes []node
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
	start  func(tb servers.TB, run Config, folder string, n int) *engine
}

var starters = []starter{
	{"file", []int{1}, func(_ servers.TB, _ Config, folder string, _ int) *engine {
		return &engine{url: fileURL(filepath.Join(folder, "locks"))}
	}},
	{"sqlite", []int{1}, func(_ servers.TB, _ Config, folder string, _ int) *engine {
		return &engine{url: "sqlite://" + filepath.ToSlash(filepath.Join(folder, "locks.db"))}
	}},
	{"redis", []int{1, 3, 5, 7}, startRedis},
	{"memcached", []int{1}, func(tb servers.TB, _ Config, _ string, _ int) *engine {
		m := servers.StartMemcached(tb)
		return &engine{m.URL(), []node{m}}
	}},
	{"postgres", []int{1}, func(tb servers.TB, _ Config, _ string, _ int) *engine {
		p := servers.StartPostgres(tb, "max_connections = 500")
		return &engine{p.URL(), []node{p}}
	}},
	{"mariadb", []int{1}, func(tb servers.TB, _ Config, _ string, _ int) *engine {
		m := servers.StartMariaDB(tb, "max_connections = 500")
		return &engine{m.URL(), []node{m}}
	}},
	{"etcd", []int{1, 3}, startEtcd},
	{"zookeeper", []int{1, 3}, startZooKeeper},
}

// durable are the settings with which Redis keeps what it has acknowledged.
var durable = []string{"appendonly yes", "appendfsync always", "maxmemory-policy noeviction"}

// startRedis starts one Redis, or several for Redlock.
func startRedis(tb servers.TB, run Config, _ string, n int) *engine {
	e := &engine{}
	var hosts []string
	for _, r := range servers.StartMasters(tb, n, durable...) {
		e.nodes, hosts, e.url = append(e.nodes, r), append(hosts, r.Addr()), r.URL()
	}
	if n > 1 {
		e.url = fmt.Sprintf("redlock://%s?quarantine=%s", strings.Join(hosts, ","), run.TTL)
	}
	return e
}

func startEtcd(tb servers.TB, _ Config, _ string, n int) *engine {
	if n == 1 {
		e := servers.StartEtcd(tb)
		return &engine{e.URL(), []node{e}}
	}
	c := servers.StartEtcdCluster(tb)
	e := &engine{url: c.URL()}
	for _, member := range c.Nodes {
		e.nodes = append(e.nodes, member)
	}
	return e
}

func startZooKeeper(tb servers.TB, _ Config, _ string, n int) *engine {
	if n == 1 {
		z := servers.StartZooKeeper(tb)
		return &engine{z.URL(), []node{z}}
	}
	e := &engine{}
	var hosts []string
	for _, z := range servers.StartEnsemble(tb).Nodes {
		e.nodes, hosts = append(e.nodes, z), append(hosts, z.Addr())
	}
	e.url = "zk://" + strings.Join(hosts, ",")
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

// startEngine starts the servers that a text names, and prepares them for the
// first lock.
func (c Config) startEngine(ctx context.Context, h *servers.Host, text, folder string) (e *engine, err error) {
	s, n, err := parseEngine(text)
	if err != nil {
		return nil, err
	}
	if err := h.Try(func() { e = s.start(h, c, folder, n) }); err != nil {
		return nil, fmt.Errorf("start %s: %w", text, err)
	}
	store, err := driver.Open(ctx, e.url)
	if err != nil {
		return nil, err
	}
	if creator, ok := store.(driver.Creator); ok {
		err = creator.Create(ctx)
	}
	return e, errors.Join(err, store.Close())
}
