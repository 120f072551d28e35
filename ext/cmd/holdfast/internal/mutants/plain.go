package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// plain are the mutants of the stores in files, Memcached and ZooKeeper.
var plain = []mutant{{
	name:  "unlink-on-release",
	wrong: "a release removes the lock file when nobody wants the key, and who has it open goes on with it",
	edits: []edit{{
		file: "filelock/store.go",
		old:  "	lost := sec.Release(sec.here.Moment, c)\n	sec.note()\n",
		new: `	lost := sec.Release(sec.here.Moment, c)
	sec.note()
	if len(sec.Held) == 0 && len(sec.Queue) == 0 {
		os.Remove(sec.file.path)
	}
`,
	}, {
		file: "filelock/file.go",
		old:  "	case n == 0:\n		return false, nil\n",
		new:  "",
	}, {
		file: "filelock/file.go",
		old:  "	if now-f.checked >= recheck {",
		new:  "	if false {",
	}},
	run:   "--start file --seed 1 --ttl 2s --for 10s --nemesis none",
	finds: check.Exclusive,
}, {
	name:  "token-of-a-process-clock",
	wrong: "tokens are the time by the clock of the process, also when that is behind the last",
	edits: []edit{{
		file: "internal/book/token.go",
		old:  "max(b.Floor+1, uint64(max(m.Wall, 0)), e.Fence)",
		new:  "max(uint64(max(m.Wall, 0)), e.Fence)",
	}},
	run:   "--start file --seed 2 --ttl 2s --for 10s --nemesis worker-clock",
	finds: check.Growing,
}, {
	name:  "release-by-delete",
	wrong: "a release deletes what is in the item, whatever has been written to it since it was read",
	edits: []edit{{
		file: "ext/memcachelock/job.go",
		old:  "fmt.Appendf(out, \"md %s C%d\\r\\n\", j.item, j.state.cas)",
		new:  "fmt.Appendf(out, \"md %s\\r\\n\", j.item)",
	}},
	run:   "--start memcached --seed 1 --ttl 1s --for 15s --workers 8 --clients 1 --keys 4 --kind shared,try --nemesis none",
	finds: check.Exclusive,
}, {
	name:  "token-of-the-sequence",
	wrong: "tokens are the numbers of the nodes' names, which begin again when the key's own node has gone",
	edits: []edit{{
		file: "ext/zklock/claim.go",
		old:  "path, zxid := cl.creating.Made()",
		new:  "path, _ := cl.creating.Made()\n		p, _ := parsePlace(path[len(cl.dir)+1:])",
	}, {
		file: "ext/zklock/claim.go",
		old:  "cl.node, cl.token = path[len(cl.dir)+1:], tokenOf(zxid)",
		new:  "cl.node, cl.token = p.name, tokenOf(int64(p.number)+1)",
	}, {
		file: "ext/zklock/claim.go",
		old:  "tokenOf(call.Stat().Czxid)",
		new:  "tokenOf(int64(p.number)+1)",
	}},
	run:   "--start zookeeper --seed 1 --ttl 2s --for 20s --clients 2 --keys 16 --nemesis none",
	finds: check.Growing,
}, {
	name:  "watches-outlive-their-server",
	wrong: "who waits is not told that the connection was lost, and goes on to wait for news that the next server does not know it is to send",
	edits: []edit{{
		file: "ext/zklock/session.go",
		old:  "			cl.watching, cl.guarded, cl.armed, cl.front = nil, false, false, false\n			cl.changes++\n		}\n	}\n	clear(k.watched)\n",
		new:  "		}\n	}\n",
	}},
	run:   "--start zookeeper:3 --seed 2 --ttl 1s --for 45s --clients 8 --keys 4 --kind exclusive,try --nemesis kill-store",
	finds: check.Lively,
}}
