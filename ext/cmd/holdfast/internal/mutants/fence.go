package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// fence are the mutants of package fence, by which a database refuses what comes too
// late.
var fence = []mutant{{
	name:  "fence-refuses-equals",
	wrong: "the fence refuses a token that is equal to the highest too, and so all that a holder writes after its first look",
	edits: []edit{{
		file: "fence/sql.go",
		old:  "if uint64(highest) > token {",
		new:  "if uint64(highest) >= token {",
	}},
	run:   "--start sqlite --seed 1 --ttl 2s --for 5s --nemesis kill",
	finds: check.Fenced,
}, {
	name:  "fence-outside-of-the-statement",
	wrong: "the fence asks for a token once, when the holder reads, and lets its write pass by that",
	edits: []edit{{
		file: "fence/sql.go",
		old:  "	query, args := st.raise, []any{[]byte(key), int64(token)}\n",
		new: `	query, args := st.raise, []any{[]byte(key), int64(token)}
	asked.Lock()
	before := asked.last[key]
	asked.last[key] = token
	asked.Unlock()
	if before == token {
		return nil
	}
`,
	}, {
		file: "fence/sql.go",
		old:  "func (s SQL) statements() (statements, error) {",
		new: `var asked = struct {
	sync.Mutex
	last map[string]uint64
}{last: make(map[string]uint64)}

func (s SQL) statements() (statements, error) {`,
	}, {
		file: "fence/sql.go",
		old:  "	\"math\"\n",
		new:  "	\"math\"\n	\"sync\"\n",
	}},
	run:   "--start postgres --seed 1 --ttl 1s --for 15s --clients 8 --nemesis pause",
	finds: check.Fenced,
}}
