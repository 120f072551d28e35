package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// countedTokens count tokens from 1, without the clock.
var countedTokens = []overlay.Edit{{
	File: "redislock/lua/mint.lua",
	Old:  "not value and now + LEAD",
	New:  "not value and 0",
}, {
	File: "redislock/lua/mint.lua",
	Old:  "return math.max(now, last + 1, least)",
	New:  "return math.max(last + 1, least)",
}}

// redis are the mutants of the store in Redis.
var redis = []mutant{{
	name:  "release-by-del",
	wrong: "a release deletes the lock of any holder",
	edits: []overlay.Edit{{
		File: "redislock/lua/release.lua",
		Old:  "redis.call('HDEL', KEYS[1], '1s' .. ARGV[1]) == 1",
		New:  "redis.call('DEL', KEYS[1]) == 1",
	}},
	run:    "--start redis --seed 1 --ttl 1s --for 10s --nemesis kill",
	finds:  check.Exclusive,
	unseen: "scripts of Redis are not simulated",
}, {
	name:   "token-from-a-counter",
	wrong:  "tokens start at 1 again when the server has forgotten the last token",
	edits:  countedTokens,
	run:    "--start redis --seed 1 --ttl 1s --for 10s --nemesis flush",
	finds:  check.Growing,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "token-as-text",
	wrong: "the last token is written as Lua writes numbers, in fourteen digits",
	edits: []overlay.Edit{{
		File: "redislock/lua/mint.lua",
		Old:  "string.format('%.0f', first + some - 1)",
		New:  "tostring(first + some - 1)",
	}},
	run:    "--start redis --seed 1 --ttl 2s --for 30s --keys 2 --nemesis clock",
	finds:  check.Growing,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "try-in-line",
	wrong: "a call that does not wait is queued all the same, and may be granted the lock after the call has returned",
	edits: []overlay.Edit{{
		File: "driver/driver.go",
		Old:  "return min(c.TTL, 3*time.Second)",
		New:  "return c.TTL",
	}, {
		File: "redislock/lua/acquire.lua",
		Old:  "if wait then\n  enqueue()\n  join(all)\nend",
		New:  "enqueue()\njoin(all)",
	}},
	run:    "--start redis --seed 1 --ttl 16s --for 30s --keys 2 --nemesis none",
	finds:  check.Lively,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "slots-by-count",
	wrong: "a release of slots lowers the count, whether or not the claim had a slot",
	edits: []overlay.Edit{{
		File: "redislock/lua/book.lua",
		Old:  "  if not value then\n    local p = placed(call('HGET', places, id))\n",
		New: `  if not value and not all.only and all.sum > 0 and all.sum < 1000 then
    all.sum = all.sum - 1
    call('HSET', held, '1all', all_text(all))
  end
  if not value then
    local p = placed(call('HGET', places, id))
`,
	}},
	run:    "--start redis --seed 1 --ttl 1s --for 15s --keys 2 --nemesis none",
	finds:  check.Exclusive,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "counter-that-expires",
	wrong: "tokens are counted, and the count expires when no lock was acquired for a second",
	edits: append([]overlay.Edit{{
		File: "redislock/lua/mint.lua",
		Old:  "string.format('%.0f', first + some - 1))",
		New:  "string.format('%.0f', first + some - 1), 'PX', 1000)",
	}, {
		File: "redislock/lua/acquire_many.lua",
		Old:  "string.format('%.0f', top))",
		New:  "string.format('%.0f', top), 'PX', 1000)",
	}}, countedTokens...),
	run:    "--start redis --seed 1 --ttl 2s --for 20s --nemesis evict",
	finds:  check.Growing,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "last-come-first-served",
	wrong: "a waiter joins the queue at its head",
	edits: []overlay.Edit{{
		File: "redislock/lua/acquire.lua",
		Old:  "call('RPUSH', line, id)",
		New:  "call('LPUSH', line, id)",
	}},
	run:    "--start redis --seed 1 --ttl 1s --for 20s --workers 8 --clients 1 --keys 1 --nemesis none",
	finds:  check.Lively,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "old-tokens-of-slots",
	wrong: "slots get tokens of some time within the last day",
	edits: []overlay.Edit{{
		File: "redislock/lua/book.lua",
		Old:  "  latest = first and first + span - 1 or latest\n",
		New:  "  latest = first and first + span - 1 or latest\n  if first and c.limit < 1000 then\n    return first - 1000000 * math.random(86400), 1\n  end\n",
	}},
	run:    "--start redis --seed 1 --ttl 1s --for 10s --keys 2 --nemesis none --kind slots",
	finds:  check.Growing,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "connection-stays",
	wrong: "the connection to Redis stays open when the store is closed",
	edits: []overlay.Edit{{
		File: "redislock/watch.go",
		Old:  "	s.running.Wait()\n	s.conn.Close()\n",
		New:  "	s.running.Wait()\n",
	}},
	run:    "--start redis --seed 1 --ttl 2s --for 5s --nemesis none",
	finds:  check.Tidy,
	unseen: "connections to Redis are not simulated",
}, {
	name:  "token-of-a-replica",
	wrong: "tokens count on from the last token that the server knows, which a replica may lack",
	edits: []overlay.Edit{{
		File: "redislock/lua/mint.lua",
		Old:  "return math.max(now, last + 1, least)",
		New:  "return math.max(last + 1, least)",
	}},
	run:    "--start redis:2 --seed 1 --ttl 2s --for 20s --keys 4 --kind exclusive,try --nemesis stale-failover",
	finds:  check.Growing,
	unseen: "scripts of Redis are not simulated",
}, {
	name:  "lease-for-five",
	wrong: "a lock stands for five times its TTL",
	edits: []overlay.Edit{{
		File: "redislock/lua/extend.lua",
		Old:  "lasting(all and math.max(stands, left_of(held)) or stands)",
		New:  "lasting(all and math.max(5 * stands, left_of(held)) or 5 * stands)",
	}, {
		File: "redislock/lua/extend.lua",
		Old:  "c.ends, c.fence = now + stands, math",
		New:  "c.ends, c.fence = now + 5 * stands, math",
	}, {
		File: "redislock/lua/acquire.lua",
		Old:  "math.ceil(ARGV[4] / 1000))",
		New:  "math.ceil(ARGV[4] / 1000) * 5)",
	}, {
		File: "redislock/lua/book.lua",
		Old:  "local function admit(all, now, id, c, lasts, fence, span)\n  local ends, free = now + lasts, all.sum == 0\n",
		New:  "local function admit(all, now, id, c, lasts, fence, span)\n  lasts = lasts * 5\n  local ends, free = now + lasts, all.sum == 0\n",
	}},
	run:    "--start redis --seed 1 --ttl 10s --for 25s --keys 4 --kind exclusive,try --nemesis kill",
	finds:  check.Lively,
	unseen: "scripts of Redis are not simulated",
}}
