package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// etcd are the mutants of the store in etcd.
var etcd = []mutant{{
	name:  "waits-for-the-one-before",
	wrong: "a claim in line holds when the one just before it has left, which may have given up",
	edits: []edit{{
		file: "ext/etcdlock/ask.go",
		old:  "s.remaining(c.Key, v.rev, v.line[:i]), v.line[:i].reader() >= 0",
		new:  "s.remaining(c.Key, v.rev, v.line[max(i-1, 0):i]), v.line[:i].reader() >= 0",
	}},
	run:   "--start etcd --seed 1 --ttl 2s --for 15s --keys 2 --nemesis kill",
	finds: check.Exclusive,
}, {
	name:  "line-by-name",
	wrong: "the line is in the order of its keys' names, not in that in which claims came",
	edits: []edit{{
		file: "ext/etcdlock/line.go",
		old:  "cmp.Compare(a.rev, b.rev)",
		new:  "cmp.Compare(a.name, b.name)",
	}},
	run:   "--start etcd --seed 1 --ttl 2s --for 15s --keys 2 --nemesis pause",
	finds: check.Exclusive,
}, {
	name:  "reader-of-an-old-phase",
	wrong: "a reader gets the token of readers that it has seen, though they may have left since, and a writer come",
	edits: []edit{{
		file: "ext/etcdlock/look.go",
		old:  "if fits || a.Shared() {",
		new:  "if fits && !a.Shared() {",
	}, {
		file: "ext/etcdlock/look.go",
		old:  "			t.when = append(t.when, v.line[last].stays())\n",
		new:  "",
	}},
	run:   "--start etcd --seed 1 --ttl 2s --for 40s --workers 8 --clients 2 --keys 6 --kind shared,try --nemesis slow",
	finds: check.Growing,
}, {
	name:  "one-key-for-a-session",
	wrong: "all claims that a process has on a key are one key of etcd, as all of a session are to its own Mutex",
	edits: []edit{{
		file: "ext/etcdlock/claim.go",
		old:  "		if s.named[name] == nil {\n			c.name, s.named[name] = name, c\n			return\n		}\n",
		new:  "		c.name, s.named[name] = name, c\n		return\n",
	}, {
		file: "ext/etcdlock/look.go",
		old:  "	if !slices.ContainsFunc(l, func(p place) bool { return p.name == a.name }) {\n",
		new:  "	if true || slices.ContainsFunc(l, func(p place) bool { return p.name == a.name }) {\n",
	}, {
		file: "ext/etcdlock/look.go",
		old:  "when: []clientv3.Cmp{a.unburied(), clientv3.Compare(clientv3.CreateRevision(a.name), \"=\", 0)},",
		new:  "when: []clientv3.Cmp{a.unburied()},",
	}},
	run:   "--start etcd --seed 1 --ttl 2s --for 15s --keys 2 --kind slots,shared,try --nemesis none",
	finds: check.Exclusive,
}}
