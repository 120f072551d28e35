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
}}
