package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// sql are the mutants of the stores in databases.
var sql = []mutant{{
	name:  "release-without-owner",
	wrong: "a release ends the claim in the row, whatever its owner",
	edits: []overlay.Edit{{
		File: "internal/sqlstore/text.go",
		Old:  "claims = '{}'{seek}\nWHERE name IN (?...) AND sole IN (?...) AND until > {now} AND format",
		New:  "claims = '{}'{seek}\nWHERE name IN (?...) AND (sole IN (?...) OR true) AND until > {now} AND format",
	}},
	run:   "--start sqlite --seed 1 --ttl 2s --for 10s --nemesis kill",
	finds: check.Exclusive,
	sim:   search{"TestSQL", lostClaims},
}, {
	name:  "write-without-version",
	wrong: "a row is written back even if another process has written the row since the read",
	edits: []overlay.Edit{{
		File: "internal/sqlstore/text.go",
		Old:  "WHERE name = ? AND version = ?`",
		New:  "WHERE name = ? AND version >= ?`",
	}},
	run:   "--start postgres --seed 1 --ttl 30s --for 30s --clients 8 --keys 2 --nemesis none",
	finds: check.Lively,
	sim:   search{"TestSQL", lostClaims},
}, {
	name:  "token-of-the-clock",
	wrong: "tokens are the time of the server's clock, even if the clock is behind the last token",
	edits: []overlay.Edit{{
		File: "internal/sqlstore/text.go",
		Old:  "{keep}({token} + ?)",
		New:  "{keep}({now} + ?)",
	}, {
		File: "internal/book/token.go",
		Old:  "max(b.Floor+1, uint64(max(m.Wall, 0)), e.Fence)",
		New:  "max(uint64(max(m.Wall, 0)), e.Fence)",
	}},
	run:   "--start postgres --seed 1 --ttl 2s --for 30s --nemesis clock",
	finds: check.Growing,
	sim:   search{"TestSeeds", []string{"tokens"}},
}, {
	name:  "place-for-ever",
	wrong: "a place in the queue, and the lock granted to that place, stand for an hour, even if the owner is silent",
	edits: []overlay.Edit{{
		File: "internal/book/book.go",
		Old:  "b.Queue[i].Until = m.in(kept)",
		New:  "b.Queue[i].Until = m.in(time.Hour)",
	}, {
		File: "internal/book/line.go",
		Old:  "window := driver.Claim{TTL: e.TTL}.Alive()",
		New:  "window := time.Hour",
	}},
	run:   "--start sqlite --seed 1 --ttl 1s --for 30s --nemesis kill",
	finds: check.Lively,
	sim:   search{"TestSeeds", []string{"progress"}},
}, {
	name:  "omitted-claims-are-none",
	wrong: "a decision that read a part of the queue is written even if the rest matters",
	edits: []overlay.Edit{{
		File: "internal/sqlstore/save.go",
		Old:  "	case d.book.Part:\n		return false, errPart\n",
		New:  "",
	}},
	sim: search{"TestSQL", lostClaims},
}, {
	name:  "end-before-token",
	wrong: "the statement that acquires a row sets the end before the token, which depends on the end: MySQL assigns from left to right",
	edits: []overlay.Edit{{
		File: "internal/sqlstore/text.go",
		Old:  "SET version = {next}, fence = {keep}({token} + ?), sole = ?, since = {now}, until = {now} + ?, claims = ?{seek}\nWHERE name = ? AND until",
		New:  "SET version = {next}, until = {now} + ?, fence = {keep}(CASE WHEN until <= {now} THEN {token} ELSE fence END + ?), sole = ?, since = {now}, claims = ?{seek}\nWHERE name = ? AND until",
	}, {
		File: "internal/sqlstore/query.go",
		Old:  "[]any{t.tokens - 1, s.parameter(t.id), t.ttl, t.claims,",
		New:  "[]any{t.ttl, t.tokens - 1, s.parameter(t.id), t.claims,",
	}},
	run:    "--start mariadb --seed 1 --ttl 2s --for 10s --nemesis none",
	finds:  check.Growing,
	unseen: "only MySQL sets columns from left to right",
}}
