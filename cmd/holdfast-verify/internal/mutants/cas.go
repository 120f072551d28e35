package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// cas are the mutants of caslock.
var cas = []mutant{{
	name:  "renewal-not-observed",
	wrong: "a process counts the TTL of a claim from when it first saw the claim, not the last renewal",
	edits: []overlay.Edit{{
		File: "caslock/record.go",
		Old:  "	if !known || seen.beat != sp.Beat {\n",
		New:  "	if !known {\n",
	}},
	run:   "--start nats --seed 1 --ttl 2s --for 20s --nemesis none",
	finds: check.Exclusive,
	sim:   search{"TestCAS", lostClaims},
}, {
	name:  "conflict-is-a-success",
	wrong: "a swap that the register has refused counts as carried out",
	edits: []overlay.Edit{{
		File: "caslock/change.go",
		Old:  "		case err == nil:\n			d.swapped(next, version, v.at)\n",
		New:  "		case err == nil || errors.Is(err, ErrConflict):\n			d.swapped(next, version, v.at)\n",
	}},
	run:   "--start nats --seed 1 --ttl 2s --for 15s --nemesis none",
	finds: check.Exclusive,
	sim:   search{"TestCAS", lostClaims},
}, {
	name:  "repeated-swap-counts-from-nothing",
	wrong: "a process that finds its own swap after a conflict does not remember when it decided",
	edits: []overlay.Edit{{
		File: "caslock/change.go",
		Old:  "d.swapped(next, v.version, tried.at)",
		New:  "d.swapped(next, v.version, v.at)",
	}},
	sim: search{"TestCAS", lostClaims},
}, {
	name:  "granted-for-less-than-a-look",
	wrong: "a claim granted from the queue stands for less time than its owner pauses between two looks",
	edits: []overlay.Edit{{
		File: "caslock/view.go",
		Old:  "		e.Until = v.at.Now + min(window, e.TTL)\n",
		New:  "		e.Until = v.at.Now + min(window, e.TTL)/64\n",
	}},
	sim: search{"TestCAS", lostClaims},
}}
