package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// redlocks are the mutants of Redlock.
var redlocks = []mutant{{
	name:  "half-is-enough",
	wrong: "Redlock takes half of the nodes for a majority",
	edits: []edit{{
		file: "redlock/store.go",
		old:  "return len(s.nodes)/2 + 1 }",
		new:  "return len(s.nodes) / 2 }",
	}},
	run:   "--start redis:5 --seed 1 --ttl 2s --for 20s --nemesis kill",
	finds: check.Exclusive,
}, {
	name:  "largest-of-the-majority",
	wrong: "a token of Redlock is the largest that a majority of the nodes has given, and the others of them do not hear of it",
	edits: []edit{{
		file: "redlock/bid.go",
		old:  "if b.votes[j].kind == granted && b.votes[j].grant.Fence == b.votes[i].grant.Fence {",
		new:  "if b.votes[j].kind == granted {",
	}, {
		file: "redlock/bid.go",
		old:  "if b.votes[i].kind == granted && n > nodes {",
		new:  "if b.votes[i].kind == granted && (n > nodes || b.votes[i].grant.Fence > token) {",
	}},
	run:   "--start redis:3 --seed 1 --ttl 1s --for 20s --nemesis worker-clock,partition",
	finds: check.Growing,
}, {
	name:  "no-quarantine",
	wrong: "the vote of a node that has restarted without its claims counts at once",
	edits: []edit{{
		file: "redlock/node.go",
		old:  "if out := n.redlock.quarantine - age; out > 0 {",
		new:  "if out := n.redlock.quarantine - age; out > n.redlock.quarantine {",
	}},
	run:   "--start redis:3 --seed 2 --ttl 2s --for 1m --clients 8 --keys 4 --kind exclusive,try --nemesis restart,partition",
	finds: check.Exclusive,
}}
