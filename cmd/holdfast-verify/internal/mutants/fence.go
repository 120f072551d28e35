package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// fence are the mutants of package fence, by which a database refuses late writes.
var fence = []mutant{{
	name:  "fence-refuses-equals",
	wrong: "the fence refuses a token equal to the highest, and so each write after a holder's first look",
	edits: []overlay.Edit{{
		File: "fence/sql.go",
		Old:  "if uint64(highest) > token {",
		New:  "if uint64(highest) >= token {",
	}},
	run:    "--start sqlite --seed 1 --ttl 2s --for 5s --nemesis kill",
	finds:  check.Fenced,
	unseen: "package fence is not simulated",
}, {
	name:  "fence-outside-of-the-statement",
	wrong: "the fence checks a token once, when the holder reads, and lets later writes pass",
	edits: []overlay.Edit{{
		File: "fence/sql.go",
		Old:  "	query, args := st.raise, []any{st.name(key), int64(token)}\n",
		New: `	query, args := st.raise, []any{st.name(key), int64(token)}
	asked.Lock()
	before := asked.last[key]
	asked.last[key] = token
	asked.Unlock()
	if before == token {
		return nil
	}
`,
	}, {
		File: "fence/sql.go",
		Old:  "func (s SQL) statements() (statements, error) {",
		New: `var asked = struct {
	sync.Mutex
	last map[string]uint64
}{last: make(map[string]uint64)}

func (s SQL) statements() (statements, error) {`,
	}, {
		File: "fence/sql.go",
		Old:  "	\"math\"\n",
		New:  "	\"math\"\n	\"sync\"\n",
	}},
	run:    "--start postgres --seed 1 --ttl 1s --for 15s --clients 8 --nemesis pause",
	finds:  check.Fenced,
	unseen: "package fence is not simulated",
}}
