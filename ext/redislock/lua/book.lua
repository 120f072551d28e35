-- The state of one key, and the rules by which it changes.
--
--   KEYS[1] held    the claims that hold
--   KEYS[2] line    list of the ids in line, first come first; those that have
--                   no place any more do not count
--   KEYS[3] places  hash: id -> a place in line
--   KEYS[4] tomb    "late" or "broken" while the id of the claim at hand is refused
--   KEYS[5] floor   the highest token given in this slot; it never expires
--
-- A place is
--
--   ends, weight, limit, span, since, asked, ttl, alive, push, client, owner, note
--
-- where push says how to reach its owner: "p" and a channel, "s" and a sharded
-- one, "b" and a channel of the whole cluster, or nothing.
local held, line, places, tomb, floor = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local MOST = 128 -- places that one call looks at
local KEEP = 30000 -- milliseconds for which a line outlives whoever asked last

-- mint returns the first of span tokens: the clock, the next number or least,
-- whichever is largest; nil if that is out of bounds.
local function mint(now, span, least)
  local last = tonumber(call('GET', floor) or 0)
  local first = math.max(now, last + 1, least)
  if first + span > TOKENS or too_high(least, now, last) then
    return nil
  end
  call('SET', floor, text(first + span - 1))
  return first
end

-- token returns the token and the span that a claim would get.
local function token(all, now, c, least)
  local reader = shared(c.weight, c.limit)
  if reader and all.phase > 0 then
    return all.phase, 1
  end
  local span = reader and 1 or c.span
  return mint(now, span, least), span
end

local function nothing()
  return { sum = 0, min = math.huge, first = '', phase = 0 }
end

local function packed(all)
  return pack(all.sum, all.min, all.first, all.phase)
end

-- prune drops the claims that have run out and looks up the first to do so.
local function prune(now, phase)
  local all = nothing()
  local fields = call('HGETALL', held)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'all' then
      local ends, weight = unpack(fields[i + 1])
      if ends <= now then
        call('HDEL', held, fields[i])
      else
        all.sum = all.sum + weight
        if ends < all.min then
          all.min, all.first = ends, fields[i]
        end
      end
    end
  end
  if all.sum == 0 then
    call('DEL', held)
  else
    all.phase = phase
    call('HSET', held, 'all', packed(all))
  end
  return all
end

-- load returns what the claims that hold are in sum, without those that have
-- run out.
local function load(now)
  local fields = call('HGET', held, 'all')
  if not fields then
    return nothing()
  end
  local sum, min, first, phase = unpack(fields)
  if min <= now then
    return prune(now, phase)
  end
  return { sum = sum, min = min, first = first, phase = phase }
end

-- admit lets a claim hold with the token that it got.
local function admit(all, now, id, c, lasts, fence, span)
  local ends, alone, field = now + lasts, all.sum == 0, 'c' .. id
  all.sum = all.sum + c.weight
  if ends < all.min then
    all.min, all.first = ends, field
  end
  all.phase = shared(c.weight, c.limit) and fence or 0
  call('HSET', held, 'all', packed(all),
    field, pack(ends, c.weight, c.limit, fence, span, now, false, c.client, c.owner, c.note))
  stretch(held, lasts, alone)
end

local function standing(id)
  local fields = call('HGET', places, id)
  if not fields then
    return nil
  end
  local p = {}
  p.ends, p.weight, p.limit, p.span, p.since, p.asked, p.ttl, p.alive, p.push, p.client, p.owner, p.note = unpack(fields)
  return p
end

local function stand(id, p)
  call('HSET', places, id, pack(p.ends, p.weight, p.limit, p.span, p.since, p.asked, p.ttl, p.alive, p.push, p.client, p.owner, p.note))
end

local function leave(id)
  call('HDEL', places, id)
  call('LREM', line, 1, id)
end

-- push tells the owner of a place of its grant. It returns false if that is
-- certainly not listening; where publishing is forbidden, the owner finds out
-- when it asks again.
local function push(p, id, fence, span, now)
  local how, channel = p.push:sub(1, 1), p.push:sub(2)
  if how == '' then
    return true
  end
  local message = table.concat({ 'g', text(fence), span, text(now - p.asked + p.alive), id }, ' ')
  local heard = redis.pcall(how == 's' and 'SPUBLISH' or 'PUBLISH', channel, message)
  return type(heard) ~= 'number' or heard > 0 or how == 'b'
end

-- handoff lets in those in line, first come first, while the next one fits.
-- Whoever is not listening is passed over and keeps its place until it asks
-- itself: that is asker, whose token and span are returned if it was let in.
local function handoff(all, now, asker)
  local at, given, spans = 0, nil, nil
  for _ = 1, MOST do
    local id = call('LINDEX', line, at)
    if not id then
      break
    end
    local p = standing(id)
    if not p or p.ends <= now then
      leave(id)
    elseif all.sum > p.limit - p.weight then
      break
    else
      local fence, span = token(all, now, p, 0)
      if not fence then
        break
      elseif id == asker then
        given, spans = fence, span
        leave(id)
        admit(all, now, id, p, p.ttl, fence, span)
      elseif push(p, id, fence, span, now) then
        leave(id)
        admit(all, now, id, p, p.alive, fence, span)
      else
        at = at + 1
      end
    end
  end
  return given, spans
end

-- drop ends a claim, held or in line. It returns the claim, nil if it had run
-- out or never was, and what the others are in sum.
local function drop(id, now)
  local all, field = load(now), 'c' .. id
  local claim = call('HGET', held, field)
  if not claim then
    local p = standing(id)
    if p then
      leave(id)
    end
    return p and p.ends > now and p or nil, all
  end
  local c = {}
  c.ends, c.weight, c.limit, c.fence, c.span, c.since, c.left, c.client = unpack(claim)
  all.sum = all.sum - c.weight
  if all.sum == 0 then
    call('DEL', held)
    return c, nothing()
  end
  call('HDEL', held, field)
  if all.first == field then
    all.first = ''
  end
  call('HSET', held, 'all', packed(all))
  return c, all
end
