package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// above are the mutants of what stands on locks: effects that run once, and elections.
var above = []mutant{{
	name:  "done-before-it-is",
	wrong: "an effect is remembered as done before it has run",
	edits: []edit{{
		file: "once/do.go",
		old:  "	result, err = fn(e.Context(ctx))\n	if err != nil {\n		return nil, err\n	}\n	return result, e.Finish(ctx, result)\n",
		new:  "	if err := e.Finish(ctx, []byte(\"0\")); err != nil {\n		return nil, err\n	}\n	return fn(e.Context(ctx))\n",
	}},
	run:   "--start file --seed 1 --ttl 2s --for 10s --kind once,try --nemesis kill",
	finds: check.Single,
}, {
	name:  "no-look-under-the-lock",
	wrong: "whether an effect is done is looked up before its lock is taken, and not again under it",
	edits: []edit{{
		file: "once/effect.go",
		old:  "	case r.State == Done:\n		e.result = r.Result\n		_ = lock.Unlock() // The result is known, whatever becomes of the lock.\n		return nil\n",
		new:  "",
	}},
	run:   "--start file --seed 1 --ttl 2s --for 10s --kind once,try --nemesis none",
	finds: check.Single,
}, {
	name:  "leader-is-not-awaited",
	wrong: "the job is given back when the context of its leader has ended, though the leader may be at work still",
	edits: []edit{{
		file: "elect/term.go",
		old:  "	return c.fn(t.ctx), nil\n",
		new: `	done := make(chan error, 1)
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
}}
