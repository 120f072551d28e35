package servers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Ensemble is three ZooKeeper servers.
type Ensemble struct {
	Nodes []*ZooKeeper
	tb    TB
	links map[[2]int][]*Proxy // by the nodes, from and to
}

// StartEnsemble starts three servers with the options of StartZooKeeper, and returns when
// the three servers serve.
func StartEnsemble(tb TB, options ...string) *Ensemble {
	tb.Helper()
	const n = 3
	e := &Ensemble{tb: tb, links: make(map[[2]int][]*Proxy)}
	var ports [n][2]int // ports for followers, once the server leads, and for elections
	for i := range ports {
		for k := range ports[i] {
			ports[i][k] = reserve(tb)
		}
	}
	lines := make([][]string, n)
	for i := range n {
		for j := range n {
			to := ports[j]
			if i != j {
				to = e.link(i, j, to)
			}
			lines[i] = append(lines[i], fmt.Sprintf("server.%d=%s:%d:%d", j+1, loopback, to[0], to[1]))
		}
	}
	// Of two servers, the server with the higher number calls back at the election address
	// announced by the lower server.
	for at, link := range e.links {
		back := e.links[[2]int{at[1], at[0]}]
		link[1].Requests.Replace(address(ports[at[0]][1]), back[1].Addr())
	}
	for i := range n {
		z := &ZooKeeper{id: i + 1}
		e.Nodes = append(e.Nodes, z.start(tb, append(append(lines[i], oftenEnough), options...)))
	}
	e.Await()
	return e
}

// oftenEnough makes servers look for the rest twice a second. Without oftenEnough, the
// interval grows to a minute.
const oftenEnough = "-Dzookeeper.fastleader.maxNotificationInterval=500"

// link puts proxies between one server and the ports of another server.
func (e *Ensemble) link(from, to int, ports [2]int) (through [2]int) {
	for k, port := range ports {
		p := StartProxy(e.tb, address(port))
		_, text, _ := strings.Cut(p.Addr(), ":")
		through[k], _ = strconv.Atoi(text)
		e.links[[2]int{from, to}] = append(e.links[[2]int{from, to}], p)
	}
	return through
}

// Addrs returns the addresses of the servers.
func (e *Ensemble) Addrs() []string { return addrs(e.Nodes) }

// URL returns the addresses of the servers as zk://host:port,host:port,...
func (e *Ensemble) URL() string { return "zk://" + strings.Join(e.Addrs(), ",") }

// Await returns when every server serves.
func (e *Ensemble) Await() {
	e.tb.Helper()
	Await(e.tb, "the ensemble", func() error {
		modes := make(map[string]int)
		for _, z := range e.Nodes {
			modes[z.mode()]++
		}
		if modes["leader"] != 1 || modes["follower"] != len(e.Nodes)-1 {
			return fmt.Errorf("the servers are: %v", modes)
		}
		return nil
	})
}

// Leader returns the server that leads.
func (e *Ensemble) Leader() *ZooKeeper {
	e.tb.Helper()
	return awaited(e.tb, "a leader", func() (*ZooKeeper, error) {
		for _, z := range e.Nodes {
			if z.mode() == "leader" {
				return z, nil
			}
		}
		return nil, errors.New("no server says that it leads")
	})
}

// Followers returns the servers that do not lead, whether they run or not.
func (e *Ensemble) Followers() []*ZooKeeper {
	e.tb.Helper()
	return others(e.Nodes, e.Leader())
}

// CutOff blocks all data between a server and the remaining servers while on. Clients
// still reach the server.
func (e *Ensemble) CutOff(z *ZooKeeper, on bool) {
	at := slices.Index(e.Nodes, z)
	for nodes, link := range e.links {
		if nodes[0] == at || nodes[1] == at {
			for _, p := range link {
				p.Blackhole(on)
			}
		}
	}
}
