package servers

import (
	"errors"
	"slices"
	"testing"
)

func TestEtcd(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(TB, ...string) *Etcd{"plain": StartEtcd, "TLS": StartEtcdTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t)
			first := e.mustStatus()
			e.Restart()
			e.awaitLeader()
			if again := e.mustStatus(); again.Header.MemberID != first.Header.MemberID {
				t.Errorf("after a restart it is %v, want %v", again, first)
			}
			e.Kill()
			if _, err := e.status(); err == nil {
				t.Error("a killed server answers")
			}
		})
	}
}

var errStillLeads = errors.New("the old one leads")

func TestEtcdCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s: make prove")
	}
	t.Parallel()
	c := StartEtcdCluster(t)
	if n := len(c.Followers()); n != 2 || len(c.Addrs()) != 3 {
		t.Errorf("%d followers at %q", n, c.Addrs())
	}
	harms := map[string]func(e *Etcd) (undo func()){
		"kill":  func(e *Etcd) func() { e.Kill(); return e.Restart },
		"pause": func(e *Etcd) func() { e.Pause(); return e.Resume },
		"cut":   func(e *Etcd) func() { e.CutOff(true); return func() { e.CutOff(false) } },
	}
	for _, name := range []string{"kill", "pause", "cut"} {
		old := c.Leader()
		undo := harms[name](old)
		var next *Etcd
		Await(t, "another leader", func() error {
			next = c.Leader()
			if next == old {
				return errStillLeads
			}
			return nil
		})
		undo()
		if !slices.Contains(c.Nodes, next) {
			t.Errorf("after %s a stranger leads", name)
		}
	}
}
