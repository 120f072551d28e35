package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// sessions are the mutants of the locks of sessions in databases.
var sessions = []mutant{{
	name:  "locks-outlive-the-session",
	wrong: "MariaDB is told to end a silent session, and with it its locks, after half of the time for which they count as held",
	edits: []edit{{
		file: "ext/mysqllock/session_open.go",
		old:  "int64((limit+time.Second-1)/time.Second)",
		new:  "int64(limit/2/time.Second)",
	}},
	run:   "--start mariadb-session --seed 1 --ttl 4s --for 40s --clients 8 --keys 4 --kind exclusive,try --nemesis partition",
	finds: check.Exclusive,
}, {
	name:  "sequence-after-a-crash",
	wrong: "the first session after a crash goes on with the sequence as it is, which has forgotten the last tokens",
	edits: []edit{{
		file: "ext/pglock/session_sequence.go",
		old:  "WHERE pg_try_advisory_xact_lock(` + present",
		new:  "WHERE false AND pg_try_advisory_xact_lock(` + present",
	}},
	run:   "--start postgres-session --seed 1 --ttl 1s --for 35s --clients 16 --keys 32 --nemesis restart",
	finds: check.Growing,
}}
