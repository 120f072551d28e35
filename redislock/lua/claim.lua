-- What the scripts know of claims. Times are microseconds of the server's
-- clock, which each script reads once: some versions let it move within one.
--
-- A claim that holds is a field of the hash "held" of its key. The names of all
-- fields begin with the format of the record, 1. A later format uses other names,
-- and keeps them while it has claims on the key: so scripts that name a field find
-- none of another format. The value of a claim is
--
--   ends:weight:limit:fence:span:since:left:details
--
-- with "L" for left once its owner has left, and details that scripts do not
-- read. A claim that is alone, since nobody else has asked for the key, is the
-- field "1s" .. id, the hash lives for as long as the claim, and "ends" does not
-- count. When somebody joins it or waits for it, or its owner leaves, fields are
-- "1c" .. id, until the key is free, and there is a field "1all", of all claims
-- together:
--
--   sum:min:phase:first
--
-- the sum of their weights; a time no later than the end of the first to run
-- out, and the field that this was when it was last looked up; and the token
-- that the readers among them share, or 0. The hash lives as long as the longest
-- claim then, or a little longer.
local call = redis.call

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

-- newer returns the format of a field, or a place in line, of a newer release.
local FORMAT = 1
local function newer(text)
  local format = text and tonumber(text:match('^%d+'))
  return format and format > FORMAT and format or nil
end

-- absence is the reply about a claim that is not in held: 0, or -format of the
-- record of a newer release.
local function absence(held)
  return -(newer(call('HGETALL', held)[1]) or 0)
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

-- A reader takes a part of what a writer takes whole, and leaves room for other readers.
local function shared(c)
  return c.limit == 1099511627776 and c.weight <= c.limit / 2
end

local function read_claim(value)
  local c, ends, weight, limit, fence, span, since = {}, nil, nil, nil, nil, nil, nil
  ends, weight, limit, fence, span, since, c.left, c.details = value:match('^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(L?):(.*)$')
  c.ends, c.weight, c.limit = tonumber(ends), tonumber(weight), tonumber(limit)
  c.fence, c.span, c.since = tonumber(fence), tonumber(span), tonumber(since)
  return c
end

local function claim_text(c)
  return string.format('%.0f:%.0f:%.0f:%.0f:%.0f:%.0f:%s:', c.ends, c.weight, c.limit, c.fence, c.span, c.since, c.left) .. c.details
end

-- lasting_until returns the text of a claim with another end.
local function lasting_until(value, ends)
  return text(ends) .. value:match(':.*$')
end

local function read_all(value)
  local sum, min, phase, first = value:match('^(%d+):(%d+):(%d+):(.*)$')
  return { sum = tonumber(sum), min = tonumber(min), phase = tonumber(phase), first = first }
end

local function all_text(all)
  return string.format('%.0f:%.0f:%.0f:', all.sum, all.min, all.phase) .. all.first
end

-- together is what an only claim is with all others.
local function together(id, c)
  return { sum = c.weight, min = c.ends, phase = shared(c) and c.fence or 0, first = '1c' .. id }
end
