package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// redlocks are the mutants of Redlock.
var redlocks = []mutant{{
	name:  "half-is-enough",
	wrong: "Redlock takes half of the nodes for a majority",
	edits: []overlay.Edit{{
		File: "redlock/store.go",
		Old:  "return len(s.nodes)/2 + 1 }",
		New:  "return len(s.nodes) / 2 }",
	}},
	run:   "--start redis:5 --seed 1 --ttl 2s --for 20s --nemesis kill",
	finds: check.Exclusive,
	sim:   search{"TestRedlock", twoHolders},
}, {
	name:  "largest-of-the-majority",
	wrong: "a token of Redlock is the largest of a majority's tokens, and the other nodes of the majority do not learn that token",
	edits: []overlay.Edit{{
		File: "redlock/bid.go",
		Old:  "v.kind == granted && v.grant.Fence == token && v.least <= token {",
		New:  "v.kind == granted {",
	}, {
		File: "redlock/bid.go",
		Old:  "if n := b.given(v.grant.Fence); n > nodes {",
		New:  "if n := b.given(v.grant.Fence); n > nodes || v.grant.Fence > token {",
	}},
	run:   "--start redis:3 --seed 1 --ttl 1s --for 20s --nemesis worker-clock,partition",
	finds: check.Growing,
	sim:   search{"TestRedlock", []string{"tokens"}},
}, {
	name:  "no-quarantine",
	wrong: "the vote of a node that has restarted without its claims counts at once",
	edits: []overlay.Edit{{
		File: "redlock/node.go",
		Old:  "n.looked.Add(n.redlock.quarantine - age)",
		New:  "n.looked.Add(-age)",
	}},
	run:   "--start redis:3 --seed 2 --ttl 2s --for 1m --clients 8 --keys 4 --kind exclusive,try --nemesis restart,partition",
	finds: check.Exclusive,
	sim:   search{"TestRedlock", twoHolders},
}}
