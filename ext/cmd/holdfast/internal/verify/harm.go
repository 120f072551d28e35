package verify

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// suffer does one fault to a server.
func (t *target) suffer(ctx context.Context, h *servers.Host, f plan.Fault) error {
	e := t.engine
	err := h.Try(func() {
		switch f.Nemesis {
		case plan.Restart:
			e.nodes[f.Node].Restart()
		case plan.KillStore:
			e.nodes[f.Node].Kill()
			sleep(ctx, f.For)
			e.nodes[f.Node].Restart()
		case plan.PauseStore:
			e.nodes[f.Node].Pause()
			sleep(ctx, f.For)
			e.nodes[f.Node].Resume()
		case plan.CutStore:
			e.cut(f.Node, true)
			sleep(ctx, f.For)
			e.cut(f.Node, false)
		case plan.Failover:
			e.failover()
		case plan.StaleFailover:
			e.cut(f.Node, true)
			sleep(ctx, f.For)
			e.failover()
		case plan.Clock:
			e.step(f.Node, f.Step)
			sleep(ctx, f.For)
			e.step(f.Node, 0)
		case plan.Evict:
			e.evict(f.Node)
		}
	})
	if err != nil {
		return fmt.Errorf("%s of server %d of %s: %w", f.Nemesis, f.Node, t.name, err)
	}
	return nil
}
