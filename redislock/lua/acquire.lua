-- acquire asks for a claim, once.
--
--   ARGV  id, weight, limit, ttl, alive, wait ("1" or ""), span, least, push, details
--
-- It returns the token if the claim holds with the span and the TTL that were
-- asked for, {1, token, span, ttl} if with others; {0, floor, retry} if not, or
-- {0, floor, retry, id, ends in, weight, limit, token, since, details} of a claim
-- in the way; {-1, what the floor says} if the token would be out of bounds;
-- -format if a newer release has written the record.
-- Readers ask for a span of 1.

-- include mint

-- The usual case: nobody else wants the key.
if redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4]) == 0 then
  local t, asked = redis.call('TIME'), tonumber(ARGV[7])
  local now = t[1] * 1000000 + t[2]
  local first, span = mint(KEYS[5], now, asked, tonumber(ARGV[8]))
  if not first then
    return { -1, redis.call('GET', KEYS[5]) or '' }
  end
  redis.call('HSET', KEYS[1], '1s' .. ARGV[1],
    string.format('0:%s:%s:%.0f:%.0f:%.0f::', ARGV[2], ARGV[3], first, span, now) .. ARGV[10])
  redis.call('PEXPIRE', KEYS[1], math.ceil(ARGV[4] / 1000))
  return span == asked and first or { 1, first, span, tonumber(ARGV[4]) }
end

-- include claim
-- include extend
-- include book

local id, ttl, alive, wait, now = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1', clock()
local c = { weight = tonumber(ARGV[2]), limit = tonumber(ARGV[3]), span = tonumber(ARGV[7]), details = ARGV[10] }

local function beyond()
  return { -1, call('GET', floor) or '' }
end

local function grant(all)
  local fence, span = token(all, now, c, tonumber(ARGV[8]))
  if not fence then
    return beyond()
  end
  admit(all, now, id, c, ttl, fence, span)
  return { 1, fence, span, ttl }
end

local function refuse(all, last)
  if all.sum == 0 then
    return { 0, last, 0 }
  end
  local way = all.only
  if not way then
    local value = field(all.first)
    if not value then
      all = prune(now, all.phase)
      value = call('HGET', held, all.first)
    end
    way = read_claim(value)
  end
  return { 0, last, way.ends - now, all.first:sub(3), way.ends - now, way.weight, way.limit, way.fence, way.since, way.details }
end

-- enqueue gives the claim a place in line, or lets it keep the one it has. A
-- full server refuses a new one; it allows PEXPIRE, and what comes after it. The
-- places of a line that was evicted do not count.
local function enqueue()
  local p = head and placed(call('HGET', places, id))
  if p then
    call('PEXPIRE', line, KEEP)
  else
    if call('RPUSH', line, id) == 1 then
      call('DEL', places)
    end
    call('PEXPIRE', line, KEEP)
    p = { since = now }
  end
  if id == head then
    head = nil
  end
  -- The text that read_place reads. The arguments are texts already: formatting is slow.
  local asked = text(now)
  call('HSET', places, id, table.concat({ '1', text(now + alive), ARGV[2], ARGV[3], ARGV[7],
    p.since == now and asked or text(p.since), asked, ARGV[4], ARGV[5], #ARGV[9], ARGV[9] }, ':') .. c.details)
  call('PEXPIRE', places, KEEP)
end

local fence, span, stands = extend(held, id, now, ttl, false, 0, true)
if fence then
  return { 1, fence, span, stands }
end
local last = given(floor, now)
if not last then
  return beyond()
end
if call('EXISTS', tomb) == 1 then
  return { 0, last, call('PTTL', tomb) * 1000 }
end
local all, format = load(now)
if format then
  return -format
end
if not head and all.sum <= c.limit - c.weight then
  return grant(all)
end
if wait then
  enqueue()
  join(all)
end
fence, span = handoff(all, now, id)
if fence then
  return { 1, fence, span, ttl }
elseif fence == false then
  return beyond()
end
if not wait and not call('LINDEX', line, 0) and all.sum <= c.limit - c.weight then
  return grant(all)
end
return refuse(all, latest or last)
