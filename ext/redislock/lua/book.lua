-- The state of one key, and the rules by which it changes, after grant.lua.
--
--   KEYS[2] line    list of the ids in line, first come first; those that have
--                   no place any more do not count
--   KEYS[3] places  hash: id -> a place in line
--   KEYS[4] tomb    "late" or "broken" while the id of the claim at hand is refused
--
-- A place is
--
--   ends, weight, limit, span, since, asked, ttl, alive, push, client, owner, note
--
-- where push says how to reach its owner: "p" and a channel, "s" and a sharded
-- one, or nothing.
local line, places, tomb = KEYS[2], KEYS[3], KEYS[4]
local MOST = 128 -- places that one call looks at
local KEEP = 30000 -- milliseconds for which a line outlives whoever asked last

local function save(all)
  call('HSET', held, 'all', pack(all.sum, all.min, all.first, all.phase))
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
    save(all)
  end
  return all
end

-- load returns what the claims that hold are in sum, without those that have
-- run out.
local function load(now)
  local fields = call('HGET', held, 'all')
  if fields then
    local sum, min, first, phase = unpack(fields)
    if min <= now then
      return prune(now, phase)
    end
    return { sum = sum, min = min, first = first, phase = phase }
  end
  local only = call('HGETALL', held)
  if not only[1] then
    return nothing()
  end
  local _, weight, limit, fence = unpack(only[2])
  return { sum = weight, min = now + left_of(held), first = only[1], phase = shared(weight, limit) and fence or 0, only = only[2] }
end

-- join makes the only claim one of several.
local function join(all)
  local _, weight, limit, fence, span, since, left, client, owner, note = unpack(all.only)
  call('HSET', held, all.first, pack(all.min, weight, limit, fence, span, since, left, client, owner, note))
  all.only = nil
end

-- admit lets a claim hold with the token that it got.
local function admit(all, now, id, c, lasts, fence, span)
  if all.only then
    join(all)
  end
  write(now, id, c, lasts, fence, span)
  local alone = all.sum == 0
  all.sum = all.sum + c.weight
  if now + lasts < all.min then
    all.min, all.first = now + lasts, 'c' .. id
  end
  all.phase = shared(c.weight, c.limit) and fence or 0
  if not alone then
    save(all)
  end
  if alone or left_of(held) < lasts then
    call('PEXPIRE', held, lasting(lasts))
  end
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

-- absent reports whether the owner of a place is certainly not listening: nobody
-- is subscribed here, and there is no replica at which it might be, where it
-- would hear of a grant that it has not got.
local function absent(p)
  if p.push == '' then
    return false
  end
  local how = p.push:sub(1, 1) == 's' and 'SHARDNUMSUB' or 'NUMSUB'
  local listeners = redis.pcall('PUBSUB', how, p.push:sub(2))
  if listeners.err or listeners[2] > 0 then
    return false
  end
  local facts = redis.pcall('INFO', 'replication')
  return type(facts) == 'string' and facts:find('connected_slaves:0', 1, true) ~= nil
end

-- push tells the owner of a place of its grant. Where publishing is forbidden,
-- it finds out when it asks again.
local function push(p, id, fence, span, now)
  if p.push ~= '' then
    local how = p.push:sub(1, 1) == 's' and 'SPUBLISH' or 'PUBLISH'
    local message = table.concat({ 'g', text(fence), span, text(now - p.asked + p.alive), id }, ' ')
    redis.pcall(how, p.push:sub(2), message)
  end
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
    elseif id ~= asker and absent(p) then
      at = at + 1
    else
      local fence, span = token(all, now, p, 0)
      if not fence then
        break
      end
      leave(id)
      if id == asker then
        given, spans = fence, span
        admit(all, now, id, p, p.ttl, fence, span)
      else
        admit(all, now, id, p, p.alive, fence, span)
        push(p, id, fence, span, now)
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
  if all.only then
    c.ends = all.min
  end
  all.sum = all.sum - c.weight
  if all.sum == 0 then
    call('DEL', held)
    return c, nothing()
  end
  call('HDEL', held, field)
  if all.first == field then
    all.first = ''
  end
  save(all)
  return c, all
end
