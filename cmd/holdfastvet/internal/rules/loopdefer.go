package rules

import (
	"go/ast"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/locks"
)

// LoopDefer reports a deferred release in a loop.
var LoopDefer = rule("loopdefer", `
report a deferred release in a loop

A deferred call runs when the function returns, not when the iteration ends. The function
holds the locks of all iterations, or waits for a lock of its own.

Bad:

	for _, key := range keys {
		lock, err := client.Obtain(ctx, key, time.Minute, nil)
		if err != nil {
			return err
		}
		defer lock.Release(context.WithoutCancel(ctx))
		if err := work(ctx); err != nil {
			return err
		}
	}

Good:

	for _, key := range keys {
		if err := workUnderLock(ctx, client, key); err != nil {
			return err
		}
	}
`, loopDefer)

func loopDefer(p *pass) {
	for _, c := range p.found.Calls {
		if c.Does == locks.Release && c.Deferred && p.loops(c) {
			p.report(c.Expr, nil, "the release is deferred in a loop: the lock stays held until the function returns")
		}
	}
}

// loops reports whether a path leads from a deferred release to an acquisition of the lock, and
// back.
func (p *pass) loops(c *locks.Call) bool {
	return slices.ContainsFunc(p.found.Others(c, locks.Acquire), func(a *locks.Call) bool {
		return p.leads(c, a) && p.leads(a, c)
	})
}

func (p *pass) leads(from, to *locks.Call) bool {
	return p.search(from, false, func(n ast.Node) verdict {
		if contains(n, to.Expr) {
			return hit
		}
		return goOn
	}) != nil
}
