package main

import "github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"

// redis are the mutants of the store in Redis.
var redis = []mutant{{
	name:  "release-by-del",
	wrong: "a release deletes the lock, whosever it is",
	edits: []edit{{
		file: "ext/redislock/lua/release.lua",
		old:  "redis.call('HDEL', KEYS[1], 's' .. ARGV[1]) == 1",
		new:  "redis.call('DEL', KEYS[1]) == 1",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 10s --nemesis kill",
	finds: check.Exclusive,
}, {
	name:  "token-from-a-counter",
	wrong: "tokens are counted from 1 whenever the server has forgotten the last",
	edits: []edit{{
		file: "ext/redislock/lua/acquire.lua",
		old:  "math.max(now, last + 1, least)",
		new:  "math.max(last + 1, least)",
	}, {
		file: "ext/redislock/lua/acquire_many.lua",
		old:  "math.max(now, last + 1)",
		new:  "last + 1",
	}, {
		file: "ext/redislock/lua/book.lua",
		old:  "math.max(now, last + 1, least)",
		new:  "math.max(last + 1, least)",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 10s --nemesis flush",
	finds: check.Growing,
}, {
	name:  "token-as-text",
	wrong: "the last token is written as Lua writes numbers, in fourteen digits",
	edits: []edit{{
		file: "ext/redislock/lua/acquire.lua",
		old:  "redis.call('SET', KEYS[5], string.format('%.0f', first + span - 1))",
		new:  "redis.call('SET', KEYS[5], tostring(first + span - 1))",
	}, {
		file: "ext/redislock/lua/book.lua",
		old:  "call('SET', floor, text(first + span - 1))",
		new:  "call('SET', floor, tostring(first + span - 1))",
	}},
	run:   "--start redis --seed 1 --ttl 2s --for 30s --keys 2 --nemesis clock",
	finds: check.Growing,
}, {
	name:  "try-in-line",
	wrong: "who does not want to wait gets a place in line all the same, and the lock when nobody is there",
	edits: []edit{{
		file: "driver/driver.go",
		old:  "return min(c.TTL, 3*time.Second)",
		new:  "return c.TTL",
	}, {
		file: "ext/redislock/lua/acquire.lua",
		old:  "if wait then\n  enqueue()\n  join(all)\nend",
		new:  "enqueue()\njoin(all)",
	}},
	run:   "--start redis --seed 1 --ttl 16s --for 30s --keys 2 --nemesis none",
	finds: check.Lively,
}, {
	name:  "slots-by-count",
	wrong: "who gives a slot back lowers the count, whether or not it had one",
	edits: []edit{{
		file: "ext/redislock/lua/book.lua",
		old:  "  local value = call('HGET', held, 'c' .. id)\n  if not value then\n    local p = standing(id)\n",
		new: `  local value = call('HGET', held, 'c' .. id)
  if not value and not all.only and all.sum > 0 and all.sum < 1000 then
    all.sum = all.sum - 1
    call('HSET', held, 'all', all_text(all))
  end
  if not value then
    local p = standing(id)
`,
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 15s --keys 2 --nemesis none",
	finds: check.Exclusive,
}, {
	name:  "counter-that-expires",
	wrong: "tokens are counted, and the count is forgotten when nobody has taken a lock for a second",
	edits: []edit{{
		file: "ext/redislock/lua/acquire.lua",
		old:  "math.max(now, last + 1, least)",
		new:  "math.max(last + 1, least)",
	}, {
		file: "ext/redislock/lua/acquire.lua",
		old:  "string.format('%.0f', first + span - 1))",
		new:  "string.format('%.0f', first + span - 1), 'PX', 1000)",
	}, {
		file: "ext/redislock/lua/acquire_many.lua",
		old:  "math.max(now, last + 1)",
		new:  "last + 1",
	}, {
		file: "ext/redislock/lua/acquire_many.lua",
		old:  "string.format('%.0f', token + count * span - 1))",
		new:  "string.format('%.0f', token + count * span - 1), 'PX', 1000)",
	}, {
		file: "ext/redislock/lua/book.lua",
		old:  "math.max(now, last + 1, least)",
		new:  "math.max(last + 1, least)",
	}, {
		file: "ext/redislock/lua/book.lua",
		old:  "call('SET', floor, text(first + span - 1))",
		new:  "call('SET', floor, text(first + span - 1), 'PX', 1000)",
	}},
	run:   "--start redis --seed 1 --ttl 2s --for 20s --nemesis evict",
	finds: check.Growing,
}, {
	name:  "last-come-first-served",
	wrong: "who asks gets a place at the head of the line",
	edits: []edit{{
		file: "ext/redislock/lua/acquire.lua",
		old:  "call('RPUSH', line, id)",
		new:  "call('LPUSH', line, id)",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 20s --workers 8 --clients 1 --keys 1 --nemesis none",
	finds: check.Lively,
}, {
	name:  "old-tokens-of-slots",
	wrong: "slots get tokens of some time within the last day",
	edits: []edit{{
		file: "ext/redislock/lua/book.lua",
		old:  "  if not shared(c) then\n    return mint(",
		new:  "  if c.limit < 1000 then\n    return mint(now, c.span, least) - 1000000 * math.random(86400), 1\n  end\n  if not shared(c) then\n    return mint(",
	}},
	run:   "--start redis --seed 1 --ttl 1s --for 10s --keys 2 --nemesis none --kind slots",
	finds: check.Growing,
}, {
	name:  "connection-stays",
	wrong: "the connection to Redis stays open when the store is closed",
	edits: []edit{{
		file: "ext/redislock/watch.go",
		old:  "	s.running.Wait()\n	s.conn.Close()\n",
		new:  "	s.running.Wait()\n",
	}},
	run:   "--start redis --seed 1 --ttl 2s --for 5s --nemesis none",
	finds: check.Tidy,
}, {
	name:  "token-of-a-replica",
	wrong: "tokens are counted on from the last one that the server knows, which a replica may not have heard of",
	edits: []edit{{
		file: "ext/redislock/lua/acquire.lua",
		old:  "math.max(now, last + 1, least)",
		new:  "math.max(last > 0 and last + 1 or now, least)",
	}, {
		file: "ext/redislock/lua/acquire_many.lua",
		old:  "math.max(now, last + 1)",
		new:  "(last > 0 and last + 1 or now)",
	}, {
		file: "ext/redislock/lua/book.lua",
		old:  "math.max(now, last + 1, least)",
		new:  "math.max(last > 0 and last + 1 or now, least)",
	}},
	run:   "--start redis:2 --seed 1 --ttl 2s --for 20s --keys 4 --kind exclusive,try --nemesis stale-failover",
	finds: check.Growing,
}, {
	name:  "lease-for-five",
	wrong: "a lock stands for five times the TTL that was asked for",
	edits: []edit{{
		file: "ext/redislock/lua/extend.lua",
		old:  "lasting(all and math.max(stands, left_of(held)) or stands)",
		new:  "lasting(all and math.max(5 * stands, left_of(held)) or 5 * stands)",
	}, {
		file: "ext/redislock/lua/extend.lua",
		old:  "c.ends, c.fence = now + stands, math",
		new:  "c.ends, c.fence = now + 5 * stands, math",
	}, {
		file: "ext/redislock/lua/acquire.lua",
		old:  "math.ceil(ARGV[4] / 1000))",
		new:  "math.ceil(ARGV[4] / 1000) * 5)",
	}, {
		file: "ext/redislock/lua/book.lua",
		old:  "local function admit(all, now, id, c, lasts, fence, span)\n  local ends, free = now + lasts, all.sum == 0\n",
		new:  "local function admit(all, now, id, c, lasts, fence, span)\n  lasts = lasts * 5\n  local ends, free = now + lasts, all.sum == 0\n",
	}},
	run:   "--start redis --seed 1 --ttl 10s --for 25s --keys 4 --kind exclusive,try --nemesis kill",
	finds: check.Lively,
}}
