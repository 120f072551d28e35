package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// sessions are the mutants of the locks of sessions in databases.
var sessions = []mutant{{
	name:  "locks-outlive-the-session",
	wrong: "MariaDB ends a silent session, and its locks, after half of the time for which the locks count as held",
	edits: []overlay.Edit{{
		File: "mysqllock/session_open.go",
		Old:  "int64((limit+time.Second-1)/time.Second)",
		New:  "int64(limit/2/time.Second)",
	}},
	run:    "--start mariadb-session --seed 1 --ttl 4s --for 40s --clients 8 --keys 4 --kind exclusive,try --nemesis partition",
	finds:  check.Exclusive,
	unseen: "MariaDB is not simulated",
}, {
	name:  "sequence-after-a-crash",
	wrong: "the first session after a crash continues the sequence, which has lost the last tokens",
	edits: []overlay.Edit{{
		File: "pglock/session_sequence.go",
		Old:  "WHERE pg_try_advisory_xact_lock(` + present",
		New:  "WHERE false AND pg_try_advisory_xact_lock(` + present",
	}},
	run:    "--start postgres-session --seed 1 --ttl 1s --for 35s --clients 16 --keys 32 --nemesis restart",
	finds:  check.Growing,
	unseen: "sequences of PostgreSQL are not simulated",
}}
