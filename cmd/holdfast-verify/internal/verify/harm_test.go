package verify

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A meek server notes that it was restarted.
type meek struct {
	number    int
	restarted *[]int
}

func (m meek) Kill()    {}
func (m meek) Pause()   {}
func (m meek) Resume()  {}
func (m meek) Restart() { *m.restarted = append(*m.restarted, m.number) }

// The fault asks which server leads when the fault comes. The history has the harmed server
// and its role.
func TestHarmToLeaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), parentFile)
	parent, err := history.Create(path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var restarted []int
	roles := []string{history.Primary, history.Replica, history.Primary, history.Sentinel}
	e := &engine{roles: func() []string { return roles }, failover: func(int) {}}
	for n := range roles {
		e.nodes = append(e.nodes, meek{n, &restarted})
	}
	c := &crew{host: &servers.Host{}, history: parent, target: &target{engine: e}}
	harm := func(n plan.Nemesis, number, node int, leader bool) {
		if err := c.harm(t.Context(), t.Context(), number, plan.Fault{Nemesis: n, Worker: -1, Node: node, Leader: leader}); err != nil {
			t.Error(err)
		}
	}
	harm(plan.Restart, 1, 3, true)
	harm(plan.Restart, 2, 3, false)
	roles = []string{history.Replica, history.Primary, history.Replica, history.Sentinel}
	harm(plan.Restart, 3, 3, true)
	harm(plan.Failover, 4, 2, false)
	if want := []int{2, 3, 1}; !slices.Equal(restarted, want) {
		t.Errorf("restarted are %v, want %v", restarted, want)
	}
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	var nodes []int
	for e, err := range history.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == history.Fault {
			nodes = append(nodes, e.Node)
		}
	}
	if want := []int{3, 4, 2, 0}; !slices.Equal(nodes, want) {
		t.Errorf("the history tells of the servers %v, want %v", nodes, want)
	}
	run, err := check.Read(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{history.Primary, history.Sentinel, history.Primary, ""} {
		if got := run.Faults[i].Role; got != want {
			t.Errorf("fault %d is of a %q, want %q", i, got, want)
		}
	}
}
