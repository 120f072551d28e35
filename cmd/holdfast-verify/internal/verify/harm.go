package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// fewEvicted is the number of locks to evict in a fault.
const fewEvicted = 3

// aim returns a server fault with the node to harm, and the role of the node. The servers
// decide which node leads; the plan does not.
func (t *target) aim(h *servers.Host, f plan.Fault) (aimed plan.Fault, role string, err error) {
	if t.engine.roles == nil || f.Nemesis.TakeOver() {
		return f, "", nil
	}
	var roles []string
	if err := h.Try(func() { roles = t.engine.roles() }); err != nil {
		return f, "", fmt.Errorf("ask who leads in %s: %w", t.name, err)
	}
	if f.Leader {
		var leaders []int
		for n, role := range roles {
			if role == history.Primary {
				leaders = append(leaders, n)
			}
		}
		f.Node = leaders[f.Node%len(leaders)]
	}
	return f, roles[f.Node], nil
}

// suffer does a fault to a server, and returns the keys of evicted locks, separated by
// spaces.
func (t *target) suffer(ctx context.Context, h *servers.Host, f plan.Fault) (evicted string, err error) {
	e := t.engine
	err = h.Try(func() {
		switch f.Nemesis {
		case plan.Restart:
			e.nodes[f.Node].Restart()
		case plan.KillStore:
			e.nodes[f.Node].Kill()
			rest.For(ctx, f.For)
			e.nodes[f.Node].Restart()
		case plan.PauseStore:
			e.nodes[f.Node].Pause()
			rest.For(ctx, f.For)
			e.nodes[f.Node].Resume()
		case plan.CutStore:
			e.cut(f.Node, true)
			rest.For(ctx, f.For)
			e.cut(f.Node, false)
		case plan.Failover:
			e.failover(f.Node)
		case plan.StaleFailover:
			e.cut(f.Node, true)
			rest.For(ctx, f.For)
			e.failover(f.Node)
		case plan.SwitchOver:
			e.switchOver(f.Node)
		case plan.Clock:
			e.step(f.Node, f.Step)
			rest.For(ctx, f.For)
			e.step(f.Node, 0)
		case plan.Evict:
			evicted = t.evict(ctx, f)
		case plan.Flush:
			e.flush(f.Node)
		}
	})
	if err != nil {
		err = fmt.Errorf("%s of server %d of %s: %w", f.Nemesis, f.Node, t.name, err)
	}
	return evicted, err
}

// evict lets a server evict a few locks.
func (t *target) evict(ctx context.Context, f plan.Fault) string {
	ctx, cancel := context.WithTimeout(ctx, f.For)
	defer cancel()
	var keys []string
	t.engine.evict(ctx, f.Node, func(lock string) bool {
		if _, key, ours := strings.Cut(lock, t.prefix); ours {
			keys = append(keys, key)
		}
		return len(keys) >= fewEvicted
	})
	return strings.Join(keys, " ")
}
