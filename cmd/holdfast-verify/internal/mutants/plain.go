package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// plain are the mutants of the stores in files, Memcached and ZooKeeper.
var plain = []mutant{{
	name:  "unlink-on-release",
	wrong: "a release removes the lock file if nobody wants the key, while another process may have the file open",
	edits: []overlay.Edit{{
		File: "filelock/store.go",
		Old:  "	lost := sec.Release(sec.here.Moment, r)\n	sec.note()\n",
		New: `	lost := sec.Release(sec.here.Moment, r)
	sec.note()
	if len(sec.Held) == 0 && len(sec.Queue) == 0 {
		os.Remove(sec.file.path)
	}
`,
	}, {
		File: "filelock/file.go",
		Old:  "	case n == 0:\n		return false, nil\n",
		New:  "",
	}, {
		File: "filelock/file.go",
		Old:  "	if now-f.checked >= recheck {",
		New:  "	if false {",
	}},
	run:    "--start file --seed 1 --ttl 2s --for 10s --nemesis none",
	finds:  check.Exclusive,
	unseen: "files are not simulated",
}, {
	name:  "token-of-a-process-clock",
	wrong: "tokens are the time of the process's clock, even if the clock is behind the last token",
	edits: []overlay.Edit{{
		File: "internal/book/token.go",
		Old:  "max(b.Floor+1, uint64(max(m.Wall, 0)), e.Fence)",
		New:  "max(uint64(max(m.Wall, 0)), e.Fence)",
	}},
	run:   "--start file --seed 2 --ttl 2s --for 10s --nemesis worker-clock",
	finds: check.Growing,
	sim:   search{"TestSeeds", []string{"tokens"}},
}, {
	name:  "release-by-delete",
	wrong: "a release deletes the item, whatever was written to the item since the read",
	edits: []overlay.Edit{{
		File: "memcachelock/job.go",
		Old:  "fmt.Appendf(out, \"md %s C%d\\r\\n\", j.item, j.state.cas)",
		New:  "fmt.Appendf(out, \"md %s\\r\\n\", j.item)",
	}},
	run:   "--start memcached --seed 1 --ttl 1s --for 15s --workers 8 --clients 1 --keys 4 --kind shared,try --nemesis none",
	finds: check.Exclusive,
	sim:   search{"TestMemcached", lostClaims},
}, {
	name:  "token-of-the-sequence",
	wrong: "tokens are the sequence numbers of node names, which begin again when the key's own node has gone",
	edits: []overlay.Edit{{
		File: "zklock/claim.go",
		Old:  "path, zxid := cl.creating.Made()",
		New:  "path, _ := cl.creating.Made()\n		p, _ := parsePlace(path[len(cl.dir)+1:])",
	}, {
		File: "zklock/claim.go",
		Old:  "cl.node, cl.token = path[len(cl.dir)+1:], tokenOf(zxid)",
		New:  "cl.node, cl.token = p.name, tokenOf(int64(p.number)+1)",
	}, {
		File: "zklock/claim.go",
		Old:  "tokenOf(call.Stat().Czxid)",
		New:  "tokenOf(int64(p.number)+1)",
	}},
	run:    "--start zookeeper --seed 1 --ttl 2s --for 20s --clients 2 --keys 16 --nemesis none",
	finds:  check.Growing,
	unseen: "ZooKeeper is not simulated",
}, {
	name:  "watches-outlive-their-server",
	wrong: "a waiter does not learn that the connection was lost, and waits for news that the next server does not send",
	edits: []overlay.Edit{{
		File: "zklock/session.go",
		Old:  "			cl.unwatchedLocked()\n		}\n	}\n	clear(k.watched)\n",
		New:  "		}\n	}\n",
	}},
	run:    "--start zookeeper:3 --seed 2 --ttl 1s --for 45s --clients 8 --keys 4 --kind exclusive,try --nemesis kill-store",
	finds:  check.Lively,
	unseen: "ZooKeeper is not simulated",
}, {
	name:  "break-is-forgotten",
	wrong: "a broken lock stays in the store, so its holder can renew it",
	edits: []overlay.Edit{{
		File: "internal/book/book.go",
		Old:  "	b.remove(e.ID)\n	b.addTomb(Tomb{ID: e.ID, Until: max(e.Until, m.in(lateness)), Broken: true})\n	_ = b.handOff(m)\n	return e, nil\n",
		New:  "	return e, nil\n",
	}},
	sim: search{"TestSeeds", []string{"left"}},
}}
