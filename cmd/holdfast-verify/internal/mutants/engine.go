package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// engine are the mutants of package holdfast, on unchanged stores.
var engine = []mutant{{
	name:  "deadline-from-reply",
	wrong: "the deadline of a lock counts from the reply, not from before the request",
	edits: []overlay.Edit{{
		File: "internal/engine/attempt.go",
		Old:  "l.grant(g, sent, now)",
		New:  "l.grant(g, now, now)",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 30s --clients 8 --keys 2 --nemesis pause",
	finds: check.Exclusive,
	sim:   search{"TestSeeds", twoHolders},
}, {
	name:  "deadline-with-grace",
	wrong: "a lock that cannot be renewed counts as held for half a TTL longer",
	edits: []overlay.Edit{{
		File: "internal/engine/lease.go",
		Old:  "l.deadline.Store(int64(sent + l.ttl - margin(l.ttl)))",
		New:  "l.deadline.Store(int64(sent + l.ttl + l.ttl/2))",
	}},
	run:   "--start redis --seed 1 --ttl 2s --for 20s --nemesis kill",
	finds: check.Exclusive,
	sim:   search{"TestSeeds", twoHolders},
}, {
	name:  "loss-is-silent",
	wrong: "the context of a lost lock does not end",
	edits: []overlay.Edit{{
		File: "internal/engine/release.go",
		Old:  "	contexts.end()\n	return first\n",
		New:  "	_ = contexts\n	return first\n",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 50s --nemesis partition",
	finds: check.Told,
	sim:   search{"TestSeeds", []string{"told"}},
}, {
	name:  "renewal-gives-up",
	wrong: "a lock is no longer renewed after one failed renewal",
	edits: []overlay.Edit{{
		File: "internal/engine/renewer.go",
		Old:  "l.due = r.now() + jitter(l.backoff)",
		New:  "l.due = never",
	}},
	run:   "--start redis --seed 227528 --ttl 20s --for 85s --clients 12 --keys 24 --nemesis drop-reply",
	finds: check.Kept,
	sim:   search{"TestSeeds", []string{"kept"}},
}, {
	name:  "same-token-in-hand-over",
	wrong: "a goroutine that gets the lock from another goroutine of its process gets the same token",
	edits: []overlay.Edit{{
		File: "internal/engine/core.go",
		Old:  "	l.fence++\n	l.spare--\n",
		New:  "	l.spare--\n",
	}},
	run:   "--start file --seed 1 --ttl 1s --for 5s --nemesis kill",
	finds: check.Growing,
	sim:   search{"TestSeeds", []string{"tokens"}},
}, {
	name:  "no-second-look",
	wrong: "a waiter subscribes after a refusal and sleeps until a wake-up, without another request once it has subscribed",
	edits: []overlay.Edit{{
		File: "internal/engine/contender.go",
		Old:  "	return c.subscribe(c.askLimit(c.now()))\n",
		New:  "	c.subscribe(c.askLimit(c.now()))\n	return false\n",
	}, {
		File: "internal/engine/contender.go",
		Old:  "nap := jitter(max(alive, g.Kept) / 3)",
		New:  "nap := time.Hour",
	}, {
		File: "internal/engine/contender.go",
		Old:  "if g.Left > 0 && g.Kept <= alive {",
		New:  "if g.Left > 0 && g.Kept <= alive && c.stop == nil {",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 40s --workers 2 --clients 1 --keys 1 --nemesis none",
	finds: check.Lively,
	sim:   search{"TestSeeds", []string{"order", "progress"}},
}, {
	name:  "cleanup-on-ended-context",
	wrong: "a call that gives up releases its claim with the context that has ended the call",
	edits: []overlay.Edit{{
		File: "internal/engine/attempt.go",
		Old:  "		cleaner{a.core}.add(t, a.lease.release[0])\n	}\n	a.lease.move(over)",
		New: `		ctx, cancel := context.WithTimeout(a.ctx, a.began+a.Wait-a.now())
		defer cancel()
		a.unlock()
		a.Store.Release(ctx, a.lease.release[:])
		a.lock()
	}
	a.lease.move(over)`,
	}},
	run:   "--start redis --seed 1 --ttl 20s --for 20s --nemesis none",
	finds: check.Lively,
	sim:   search{"TestSeeds", []string{"close", "order", "progress"}},
}, {
	name:  "renewal-after-release",
	wrong: "a released lock is still renewed, and the store brings the lock back",
	edits: []overlay.Edit{{
		File: "internal/engine/release.go",
		Old:  "		t.agenda.remove(h.lease)\n		e.Parked",
		New:  "		e.Parked",
	}, {
		File: "internal/sqlstore/text.go",
		Old:  "until = {now} + ?{seek}\nWHERE name IN (?...) AND sole IN (?...) AND until > {now} AND format",
		New:  "until = {now} + ?{seek}\nWHERE name IN (?...) AND sole IN (?...) AND format",
	}, {
		File: "internal/sqlstore/text.go",
		Old:  "sole = {none}, until = {now}, claims = '{}'",
		New:  "until = {now}",
	}},
	run:   "--start sqlite --seed 1 --ttl 16s --for 1m --workers 2 --clients 2 --keys 64 --nemesis none",
	finds: check.Lively,
	sim:   search{"TestSeeds", []string{"progress"}},
}, {
	name:  "hand-over-of-a-dead-lease",
	wrong: "a process hands a lock over for as long as a goroutine waits, each time as if the store had granted the lock anew",
	edits: []overlay.Edit{{
		File: "internal/engine/lease.go",
		Old:  "l.spare == 0 || now-l.arrived >= MaxTurn {",
		New:  "l.spare == 0 {",
	}, {
		File: "internal/engine/core.go",
		Old:  "	l.spare--\n",
		New:  "	l.spare--\n	l.extend(now)\n",
	}},
	run:   "--start redis --seed 1 --ttl 500ms --for 15s --workers 3 --clients 32 --keys 1 --kind exclusive,try --nemesis none",
	finds: check.Exclusive,
	sim:   search{"TestSeeds", []string{"exclusion", "kept", "order", "tokens", "told"}},
}, {
	name:  "parked-for-ever",
	wrong: "a parked claim that nobody takes over is not released",
	edits: []overlay.Edit{{
		File: "internal/engine/parking.go",
		Old:  "			p.release()\n			return\n",
		New:  "			return\n",
	}},
	sim: search{"TestSeeds", []string{"order", "progress", "limit"}},
}, {
	name:  "unlock-of-the-inner",
	wrong: "a re-entrant lock is released by the first Unlock, not by the last",
	edits: []overlay.Edit{{
		File: "internal/engine/release.go",
		Old:  "	if h.entries > 0 {\n",
		New:  "	if h.entries > 1 {\n",
	}},
	run:   "--start file --seed 1 --ttl 2s --for 5s --keys 2 --kind reenter,try --nemesis none",
	finds: check.Exclusive,
	sim:   search{"TestSeeds", []string{"enter"}},
}, {
	name:  "upgrade-outlives-its-reader",
	wrong: "the upgrade of a read lock is still held when its read lock is lost, and leaves room for a reader",
	edits: []overlay.Edit{{
		File: "internal/engine/hold.go",
		Old:  "		return h.reader.Ended()\n",
		New:  "		return nil\n",
	}, {
		File: "internal/engine/release.go",
		Old:  "	if u := h.upgrade.Load(); u != nil {\n		u.lose(why)\n	}\n",
		New:  "",
	}},
	sim: search{"TestSeeds", twoHolders},
}, {
	name:  "silence-is-consent",
	wrong: "a renewal without an answer counts as successful",
	edits: []overlay.Edit{{
		File: "internal/engine/renewer.go",
		Old:  "		case err == nil:\n			l.confirm(sent)",
		New:  "		case !errors.Is(err, driver.ErrLost):\n			l.confirm(sent)",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 30s --nemesis pause-store",
	finds: check.Exclusive,
	sim:   search{"TestSeeds", twoHolders},
}, {
	name:  "sleep-is-not-counted",
	wrong: "the time asleep of a suspended machine does not count for a lease",
	edits: []overlay.Edit{{
		File: "internal/boottime/clock.go",
		Old:  "return c.ran(t) + c.slept(t)",
		New:  "return c.ran(t)",
	}},
	sim: search{"TestSeeds", twoHolders},
}, {
	name:  "no-look-after-a-suspend",
	wrong: "a loss waits for a timer that stands still during a suspend, and nothing reads the clock before",
	edits: []overlay.Edit{{
		File: "internal/engine/agenda.go",
		Old:  "const maxNap = time.Second",
		New:  "const maxNap = time.Hour",
	}},
	sim: search{"TestSeeds", []string{"told"}},
}, {
	name:  "no-wait",
	wrong: "a call that waits returns ErrHeld at the first refusal of the store",
	edits: []overlay.Edit{{
		File: "internal/engine/contender.go",
		Old:  "	case c.Limited && now >= c.began+c.Wait:\n",
		New:  "	case failed == nil && !c.upgrades():\n",
	}},
	sim: search{"TestSeeds", []string{"limit"}},
}, {
	name:  "wait-is-ignored",
	wrong: "a call waits until its context ends, whatever Wait says",
	edits: []overlay.Edit{{
		File: "option.go",
		Old:  "s.Wait, s.Limited = d, true",
		New:  "s.Wait, s.Limited = d, d == 0",
	}},
	sim: search{"TestSeeds", []string{"limit"}},
}, {
	name:  "unlock-tries-on",
	wrong: "Unlock tries ten times if the store does not answer, each time for up to a second",
	edits: []overlay.Edit{{
		File: "internal/engine/release.go",
		Old:  "const releaseTries = 3",
		New:  "const releaseTries = 10",
	}},
	sim: search{"TestSeeds", []string{"limit"}},
}, {
	name:  "refusal-is-a-failure",
	wrong: "a renewal that the store refuses counts as a failed renewal: the holder works on until the deadline",
	edits: []overlay.Edit{{
		File: "internal/engine/renewer.go",
		Old:  "		case errors.Is(err, driver.ErrLost):\n			l.move",
		New:  "		case err == driver.ErrInvalid && errors.Is(err, driver.ErrLost):\n			l.move",
	}},
	sim: search{"TestSeeds", []string{"told"}},
}, {
	name:  "no-queue-for-readers",
	wrong: "a claim that fits beside the holders passes the queue of the store",
	edits: []overlay.Edit{{
		File: "internal/book/book.go",
		Old:  "if len(b.Queue) == 0 && b.fits(&e) {",
		New:  "if b.fits(&e) {",
	}},
	sim: search{"TestSeeds", []string{"order"}},
}, {
	name:  "group-of-one",
	wrong: "the context and Err of several locks follow the first lock only",
	edits: []overlay.Edit{{
		File: "group.go",
		Old:  "	for _, l := range g.locks {\n		if err := l.Err(); err != nil {\n",
		New:  "	for _, l := range g.locks[:1] {\n		if err := l.Err(); err != nil {\n",
	}, {
		File: "group.go",
		Old:  "	for _, l := range g.locks {\n		parent = l.Context(parent)\n",
		New:  "	for _, l := range g.locks[:1] {\n		parent = l.Context(parent)\n",
	}},
	sim: search{"TestSeeds", []string{"told", "group"}},
}, {
	name:  "unlock-hides-the-loss",
	wrong: "Unlock of a lost lock returns nil, as if the work had been alone",
	edits: []overlay.Edit{{
		File: "internal/engine/release.go",
		Old:  "		return h.unlockLost(why)\n",
		New:  "		_ = h.unlockLost(why)\n		return nil\n",
	}},
	sim: search{"TestSeeds", []string{"told"}},
}, {
	name:  "entered-though-exclusive",
	wrong: "Reenter enters a lock that was requested with Exclusive",
	edits: []overlay.Edit{{
		File: "option.go",
		Old:  "if s.reenter && s.kind == \"Exclusive\" {",
		New:  "if s.reenter && s.kind == \"never\" {",
	}},
	sim: search{"TestSeeds", []string{"enter"}},
}}
