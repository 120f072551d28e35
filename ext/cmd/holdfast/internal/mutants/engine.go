package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// engine are the mutants of package holdfast, on stores that are themselves.
var engine = []mutant{{
	name:  "deadline-from-reply",
	wrong: "the deadline of a lock counts from when the grant came, not from before it was asked for",
	edits: []edit{{
		file: "acquire.go",
		old:  "l.grant(g, sent, now)",
		new:  "l.grant(g, now, now)",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 30s --clients 8 --keys 2 --nemesis pause",
	finds: check.Exclusive,
}, {
	name:  "deadline-with-grace",
	wrong: "a lock that cannot be renewed counts as held for half of its TTL longer",
	edits: []edit{{
		file: "lease.go",
		old:  "l.deadline.Store(int64(sent + l.ttl - margin(l.ttl)))",
		new:  "l.deadline.Store(int64(sent + l.ttl + l.ttl/2))",
	}},
	run:   "--start redis --seed 1 --ttl 2s --for 20s --nemesis kill",
	finds: check.Exclusive,
}, {
	name:  "loss-is-silent",
	wrong: "the context of a lock that is lost does not end",
	edits: []edit{{
		file: "lock.go",
		old:  "	contexts.end()\n	return first\n",
		new:  "	_ = contexts\n	return first\n",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 50s --nemesis partition",
	finds: check.Told,
}, {
	name:  "renewal-gives-up",
	wrong: "a lock is not renewed any more once a renewal has failed",
	edits: []edit{{
		file: "round.go",
		old:  "l.due = lk.now() + jitter(l.backoff)",
		new:  "l.due = never",
	}},
	run:   "--start redis --seed 227528 --ttl 20s --for 85s --clients 12 --keys 24 --nemesis drop-reply",
	finds: check.Kept,
}, {
	name:  "same-token-in-hand-over",
	wrong: "a goroutine that gets the lock from another of its process gets its token too",
	edits: []edit{{
		file: "lock.go",
		old:  "	l.fence++\n	l.spare--\n",
		new:  "	l.spare--\n",
	}},
	run:   "--start file --seed 1 --ttl 1s --for 5s --nemesis kill",
	finds: check.Growing,
}, {
	name:  "no-second-look",
	wrong: "who was refused subscribes and sleeps until it is woken, without another look after it has subscribed",
	edits: []edit{{
		file: "contend.go",
		old:  "again = c.subscribe()",
		new:  "c.subscribe()",
	}, {
		file: "contend.go",
		old:  "pause := jitter(min(c.ttl/3, time.Second))",
		new:  "pause := time.Hour",
	}, {
		file: "contend.go",
		old:  "if g.Retry > 0 {",
		new:  "if g.Retry > 0 && c.stop == nil {",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 40s --workers 2 --clients 1 --keys 1 --nemesis none",
	finds: check.Lively,
}, {
	name:  "cleanup-on-ended-context",
	wrong: "what a call that has given up may have left is released by the context that has ended it",
	edits: []edit{{
		file: "acquire.go",
		old:  "		a.lk.cleaner.add(a.lease.released())\n",
		new: `		ctx, cancel := context.WithTimeout(a.ctx, a.began+a.wait-a.lk.now())
		defer cancel()
		a.lk.store.Release(ctx, []driver.Claim{a.lease.released()})
`,
	}},
	run:   "--start redis --seed 1 --ttl 20s --for 20s --nemesis none",
	finds: check.Lively,
}, {
	name:  "renewal-after-release",
	wrong: "a lock that was given back is renewed all the same, and the store brings it back",
	edits: []edit{{
		file: "lock.go",
		old:  "	if !handed {\n		lk.renewer.remove(r.lease)\n	}\n",
		new:  "",
	}, {
		file: "sqllock/text.go",
		old:  "until = {now} + ?\nWHERE name IN (?...) AND sole IN (?...) AND until > {now}`",
		new:  "until = {now} + ?\nWHERE name IN (?...) AND sole IN (?...)`",
	}, {
		file: "sqllock/text.go",
		old:  "sole = '', until = {now}, claims = '{}'",
		new:  "until = {now}",
	}},
	run:   "--start sqlite --seed 1 --ttl 16s --for 1m --workers 2 --clients 2 --keys 64 --nemesis none",
	finds: check.Lively,
}, {
	name:  "hand-over-of-a-dead-lease",
	wrong: "a lock goes from hand to hand in a process for as long as somebody waits, each time as if the store had granted it anew",
	edits: []edit{{
		file: "lease.go",
		old:  "l.spare == 0 || now-l.taken >= maxTurn || !l.serves(want)",
		new:  "l.spare == 0 || !l.serves(want)",
	}, {
		file: "lock.go",
		old:  "	l.spare--\n",
		new:  "	l.spare--\n	l.extend(at)\n",
	}},
	run:   "--start redis --seed 1 --ttl 500ms --for 15s --workers 3 --clients 32 --keys 1 --kind exclusive,try --nemesis none",
	finds: check.Exclusive,
}, {
	name:  "unlock-of-the-inner",
	wrong: "a lock that was entered again is given back by the first Unlock, not by the last",
	edits: []edit{{
		file: "lock.go",
		old:  "	if r.entries > 0 {\n",
		new:  "	if r.entries > 0 && l.outer == nil {\n",
	}},
	run:   "--start file --seed 1 --ttl 2s --for 5s --keys 2 --kind reenter,try --nemesis none",
	finds: check.Exclusive,
}, {
	name:  "silence-is-consent",
	wrong: "a renewal that is not answered counts as one that has succeeded",
	edits: []edit{{
		file: "round.go",
		old:  "		case err == nil:\n			if l.unconfirmed {",
		new:  "		case !errors.Is(err, driver.ErrLost):\n			if l.unconfirmed {",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 30s --nemesis pause-store",
	finds: check.Exclusive,
}}
