-- What the scripts know of claims. Times are microseconds of the server's
-- clock, which each script reads once: some versions let it move within one.
--
-- A claim that holds is a field "c" .. id of the hash "held" of its key:
--
--   ends, weight, limit, fence, span, since, left, client, owner, note
--
-- As long as it is the only one, the hash lives for as long as it does, and
-- "ends" does not count. When a second one comes, or the owner leaves, the hash
-- gets a field "all", kept until the key is free, and lives as long as the
-- longest claim or a little longer:
--
--   sum    of the weights
--   min    no later than the end of the first to run out
--   first  the field that this was when it was last looked up
--   phase  the token that the readers among them share, 0 if none
local call, pack, unpack = redis.call, cmsgpack.pack, cmsgpack.unpack

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

-- lasting is a TTL for Redis.
local function lasting(us)
  return math.max(math.ceil(us / 1000), 1)
end

-- left_of is for how long a key lives.
local function left_of(key)
  return math.max(call('PTTL', key), 0) * 1000
end

-- text is a whole number as it is: tostring would round it.
local function text(n)
  return string.format('%.0f', n)
end

-- A reader takes a part of what a writer takes whole.
local function shared(weight, limit)
  return limit == 1099511627776 and weight < limit
end
