package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// above are the mutants of packages built on locks: effects that run once, and elections.
var above = []mutant{{
	name:  "done-before-it-is",
	wrong: "an effect is recorded as done before the effect has run",
	edits: []overlay.Edit{{
		File: "once/runner.go",
		Old:  "	result, err = fn(e.Context(ctx))\n	if err != nil {\n		return nil, err\n	}\n	return result, e.Finish(ctx, result)\n",
		New:  "	if err := e.Finish(ctx, []byte(\"0\")); err != nil {\n		return nil, err\n	}\n	return fn(e.Context(ctx))\n",
	}},
	run:   "--start file --seed 1 --ttl 2s --for 10s --kind once,try --nemesis kill",
	finds: check.Single,
	sim:   search{"TestOnce", []string{"once"}},
}, {
	name:  "no-look-under-the-lock",
	wrong: "whether an effect is done is looked up before its lock is acquired, and not again under the lock",
	edits: []overlay.Edit{{
		File: "once/effect.go",
		Old:  "	case err == nil && r.State == Done:\n		e.result = r.Result\n		_ = lock.Unlock() // The result is known, whatever happens to the lock.\n		return nil\n",
		New:  "",
	}},
	run:   "--start file --seed 1 --ttl 2s --for 10s --kind once,try --nemesis none",
	finds: check.Single,
	sim:   search{"TestOnce", []string{"once"}},
}, {
	name:  "leader-is-not-awaited",
	wrong: "the job is released when the context of its leader ends, though the leader may still be at work",
	edits: []overlay.Edit{{
		File: "elect/term.go",
		Old:  "	return c.fn(t.ctx), nil\n",
		New: `	done := make(chan error, 1)
	go func() { done <- c.fn(t.ctx) }()
	select {
	case result = <-done:
		return result, nil
	case <-t.ctx.Done():
		return t.ctx.Err(), nil
	}
`,
	}},
	run:   "--start file --seed 1 --ttl 2s --for 10s --keys 2 --kind elect,try --nemesis none",
	finds: check.Exclusive,
	sim:   search{"TestElect", []string{"elect"}},
}}
