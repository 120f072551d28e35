package servers

import (
	"slices"
	"strings"
	"testing"
)

func TestZooKeeper(t *testing.T) {
	z := StartZooKeeper(t, "maxClientCnxns=17")
	Until(t, "the settings", func() bool {
		said, _ := z.Do("conf")
		return strings.Contains(said, "maxClientCnxns=17")
	})
	Until(t, "a single server", func() bool { return z.mode() == "standalone" })
	nodes, addr := z.Count("znode_count"), z.Addr()
	if nodes == 0 {
		t.Error("there are no nodes")
	}
	z.Kill()
	if _, err := z.Do("ruok"); err == nil {
		t.Error("a killed server answers")
	}
	z.Restart()
	if z.Addr() != addr {
		t.Errorf("after a restart it is at %s, and was at %s", z.Addr(), addr)
	}
}

func TestEnsemble(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	e := StartEnsemble(t)
	first := e.Leader()
	if rest := e.Followers(); len(rest) != 2 || slices.Contains(rest, first) || len(e.Addrs()) != 3 {
		t.Errorf("%s leads %v", first.Addr(), rest)
	}
	leads := func(z *ZooKeeper) func() bool {
		return func() bool {
			return slices.ContainsFunc(e.Nodes, func(other *ZooKeeper) bool { return other != z && other.mode() == "leader" })
		}
	}
	e.CutOff(first, true)
	Until(t, "another leads", leads(first))
	e.CutOff(first, false)
	e.Await()

	second := e.Leader()
	second.Kill()
	Until(t, "another leads", leads(second))
	second.Restart()
	e.Await()

	third := e.Leader()
	third.Pause()
	Until(t, "another leads", leads(third))
	third.Resume()
	e.Await()
}
