package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// sql are the mutants of the stores in databases.
var sql = []mutant{{
	name:  "release-without-owner",
	wrong: "a release ends what stands in the row, whosever it is",
	edits: []edit{{
		file: "sqllock/text.go",
		old:  "claims = '{}'\nWHERE name IN (?...) AND sole IN (?...) AND until > {now}`",
		new:  "claims = '{}'\nWHERE name IN (?...) AND (sole IN (?...) OR true) AND until > {now}`",
	}},
	run:   "--start sqlite --seed 1 --ttl 2s --for 10s --nemesis kill",
	finds: check.Exclusive,
}, {
	name:  "write-without-version",
	wrong: "a row is written back without a look whether another has written it since it was read",
	edits: []edit{{
		file: "sqllock/text.go",
		old:  "WHERE name = ? AND version = ?`",
		new:  "WHERE name = ? AND version >= ?`",
	}},
	run:   "--start postgres --seed 1 --ttl 30s --for 30s --clients 8 --keys 2 --nemesis none",
	finds: check.Lively,
}, {
	name:  "token-of-the-clock",
	wrong: "tokens are the time by the clock of the server, also when that is behind the last",
	edits: []edit{{
		file: "sqllock/text.go",
		old:  "{keep}({greatest}(fence + 1, {now}) + ?)",
		new:  "{keep}({now} + ?)",
	}, {
		file: "internal/book/token.go",
		old:  "max(b.Floor+1, uint64(max(m.Wall, 0)), e.Fence)",
		new:  "max(uint64(max(m.Wall, 0)), e.Fence)",
	}},
	run:   "--start postgres --seed 1 --ttl 2s --for 30s --nemesis clock",
	finds: check.Growing,
}, {
	name:  "place-for-ever",
	wrong: "a place in line, and the lock that comes to it, stand for an hour, whether or not their owner is heard of",
	edits: []edit{{
		file: "driver/driver.go",
		old:  "return min(c.TTL, 3*time.Second)",
		new:  "return time.Hour",
	}},
	run:   "--start sqlite --seed 1 --ttl 1s --for 30s --nemesis kill",
	finds: check.Lively,
}, {
	name:  "end-before-token",
	wrong: "the statement that takes a row sets when it ends before it counts the token, which looks at the end: MySQL goes from left to right",
	edits: []edit{{
		file: "sqllock/text.go",
		old:  "SET version = version + 1, fence = {keep}({greatest}(fence + 1, {now}) + ?), sole = ?, since = {now}, until = {now} + ?, claims = ?\nWHERE name = ? AND until",
		new:  "SET version = version + 1, until = {now} + ?, fence = {keep}(CASE WHEN until <= {now} THEN {greatest}(fence + 1, {now}) ELSE fence END + ?), sole = ?, since = {now}, claims = ?\nWHERE name = ? AND until",
	}, {
		file: "sqllock/store.go",
		old:  "acquireRow, tokens-1, id, e.TTL, string(claims),",
		new:  "acquireRow, e.TTL, tokens-1, id, string(claims),",
	}},
	run:   "--start mariadb --seed 1 --ttl 2s --for 10s --nemesis none",
	finds: check.Growing,
}}
