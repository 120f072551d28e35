package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// etcd are the mutants of the store in etcd.
var etcd = []mutant{{
	name:  "waits-for-the-one-before",
	wrong: "a queued claim holds when the claim just before it has left, which may have given up",
	edits: []overlay.Edit{{
		File: "etcdlock/ask.go",
		Old:  "s.remainingLocked(c.key, v.rev, v.queue[:i]), v.queue[:i].reader() >= 0",
		New:  "s.remainingLocked(c.key, v.rev, v.queue[max(i-1, 0):i]), v.queue[:i].reader() >= 0",
	}},
	run:    "--start etcd --seed 1 --ttl 2s --for 15s --keys 2 --nemesis kill",
	finds:  check.Exclusive,
	unseen: "etcd is not simulated",
}, {
	name:  "line-by-name",
	wrong: "the queue is in the order of its keys' names, not in FIFO order",
	edits: []overlay.Edit{{
		File: "etcdlock/queue.go",
		Old:  "cmp.Compare(a.rev, b.rev)",
		New:  "cmp.Compare(a.name, b.name)",
	}},
	run:    "--start etcd --seed 1 --ttl 2s --for 15s --keys 2 --nemesis pause",
	finds:  check.Exclusive,
	unseen: "etcd is not simulated",
}, {
	name:  "reader-of-an-old-phase",
	wrong: "a reader gets the token of readers from before, though the readers may have left and a writer may have come since",
	edits: []overlay.Edit{{
		File: "etcdlock/join.go",
		Old:  "if fits || a.Shared() {",
		New:  "if fits && !a.Shared() {",
	}, {
		File: "etcdlock/join.go",
		Old:  "		when = append(when, v.queue[last].unwritten())\n",
		New:  "",
	}},
	run:    "--start etcd --seed 1 --ttl 2s --for 40s --workers 8 --clients 2 --keys 6 --kind shared,try --nemesis slow",
	finds:  check.Growing,
	unseen: "etcd is not simulated",
}, {
	name:  "one-key-for-a-session",
	wrong: "all claims of a process on a key are one key of etcd, as in etcd's own Mutex",
	edits: []overlay.Edit{{
		File: "etcdlock/claim.go",
		Old:  "		if s.named[name] == nil {\n			c.name, s.named[name] = name, c\n			return\n		}\n",
		New:  "		c.name, s.named[name] = name, c\n		return\n",
	}, {
		File: "etcdlock/join.go",
		Old:  "	if !slices.ContainsFunc(q, func(e entry) bool { return e.name == a.entry.name }) {\n",
		New:  "	if true || slices.ContainsFunc(q, func(e entry) bool { return e.name == a.entry.name }) {\n",
	}, {
		File: "etcdlock/join.go",
		Old:  "return []clientv3.Cmp{a.noTomb(), clientv3.Compare(clientv3.CreateRevision(a.entry.name), \"=\", 0)}",
		New:  "return []clientv3.Cmp{a.noTomb()}",
	}},
	run:    "--start etcd --seed 1 --ttl 2s --for 15s --keys 2 --kind slots,shared,try --nemesis none",
	finds:  check.Exclusive,
	unseen: "etcd is not simulated",
}}
