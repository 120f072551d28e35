package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// cas are the mutants of caslock. The tests of caslock show these mutants at once, so they are not
// here: a swap without an answer counts as not carried out (TestLateSwap), a late swap is
// forgotten (TestLateSwap), and an old record is an answer (TestStaleRead). The simulator finds
// no violation in the first of these mutants: only a key stays locked until the TTL ends.
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
		Old:  "		looks := v.at.Now + 3*v.pauses[p.ID]\n		e.Until = max(v.at.Now+driver.Claim{TTL: e.TTL}.Alive(), min(looks, v.places[p.ID]))\n",
		New:  "		e.Until = v.at.Now + driver.Claim{TTL: e.TTL}.Alive()/64\n",
	}},
	sim: search{"TestCAS", lostClaims},
}, {
	name:  "pages-repeat",
	wrong: "the version of a record is a digest of the claims only (a mistake of the simulated register, whose digest leaves out the number and the nonce of caslock)",
	edits: []overlay.Edit{{
		File: "internal/sim/cas_test.go",
		Old:  "	sum := md5.Sum(data)\n",
		New:  "	sum := md5.Sum(regexp.MustCompile(`\"(seq|nonce|beat)\":[0-9]+`).ReplaceAll(data, nil))\n",
	}, {
		File: "internal/sim/cas_test.go",
		Old:  "	\"slices\"\n",
		New:  "	\"regexp\"\n	\"slices\"\n",
	}},
	sim: search{"TestCAS", lostClaims},
}, {
	name:  "record-without-its-lead",
	wrong: "a record is kept for an hour after its claims, even if its highest token is ahead of the clock",
	edits: []overlay.Edit{{
		File: "caslock/change.go",
		Old:  "max(longest+drift(longest), ahead)+keep",
		New:  "max(longest+drift(longest), min(ahead, 0))+keep",
	}},
	sim: search{"TestCAS", []string{"tokens"}},
}, {
	name:  "told-conflict-is-a-loss",
	wrong: "a swap that the register has refused, with the record that the key has, counts as the loss of the claim",
	edits: []overlay.Edit{{
		File: "caslock/change.go",
		Old:  "		errors.As(err, &shown)\n",
		New:  "		if errors.As(err, &shown) {\n			return driver.ErrLost\n		}\n",
	}},
	sim: search{"TestCAS", lostClaims},
}}
