-- The state of one key, and the rules by which it changes.
--
--   KEYS[1] held    the claims that hold
--   KEYS[2] line    list of the ids in line, first come first; those that have
--                   no place any more do not count
--   KEYS[3] places  hash: id -> a place in line
--   KEYS[4] tomb    "late" or "broken" while the id of the claim at hand is refused
--   KEYS[5] floor   the highest token given; it never expires

-- include place

local held, line, places, tomb, floor = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local MOST = 128 -- places that one call looks at
local KEEP = 30000 -- milliseconds for which a line outlives whoever asked last

-- What load has read, so that no script reads it again: a call of Redis from a script takes
-- a microsecond. A change of held sets fields to nil. A change of the line, or of its first
-- place, sets head to nil. head is false if the line was empty.
local fields -- of held
local head, place -- the first id in line, and the text of its place

local latest -- the highest token that this script has given, nil without one

-- field returns a field of held. To search a long list takes longer than to read the field.
local function field(name)
  if not fields or #fields > 32 then
    return call('HGET', held, name)
  end
  for i = 1, #fields, 2 do
    if fields[i] == name then
      return fields[i + 1]
    end
  end
end

-- token returns the token and the span that a claim gets.
local function token(all, now, c, least)
  if shared(c) and all.phase > 0 then
    return all.phase, 1
  end
  local first, span = mint(floor, now, shared(c) and 1 or c.span, least)
  latest = first and first + span - 1 or latest
  return first, span
end

-- nothing is what no claims are together.
local function nothing()
  return { sum = 0, min = math.huge, phase = 0, first = '' }
end

-- prune drops the claims that have run out and looks up the first to do so.
local function prune(now, phase)
  local all = nothing()
  fields = fields or call('HGETALL', held)
  for i = 1, #fields, 2 do
    if fields[i] ~= '1all' then
      local c = read_claim(fields[i + 1])
      if c.ends <= now then
        call('HDEL', held, fields[i])
      else
        all.sum = all.sum + c.weight
        if c.ends < all.min then
          all.min, all.first = c.ends, fields[i]
        end
      end
    end
  end
  fields = nil
  if all.sum == 0 then
    call('DEL', held)
  else
    all.phase = phase
    call('HDEL', held, '1all') -- A full server allows this, and what comes after it.
    call('HSET', held, '1all', all_text(all))
  end
  return all
end

-- load returns what the claims that hold are together, without those that have
-- run out; and of an only one, "only". Of the record of a newer release it returns
-- nil and the format, before the script has changed anything.
local function load(now)
  fields, head = call('HGETALL', held), call('LINDEX', line, 0)
  place = head and call('HGET', places, head)
  local format = newer(fields[1]) or newer(place)
  if format then
    return nil, format
  end
  if #fields == 2 then
    local id, c = fields[1]:sub(3), read_claim(fields[2])
    c.ends = now + left_of(held)
    local all = together(id, c)
    all.only, all.value = c, fields[2]
    return all
  elseif #fields == 0 then
    return nothing()
  end
  local all = read_all(field('1all'))
  if all.min <= now then
    return prune(now, all.phase)
  end
  return all
end

-- join makes the only claim one of several, or one that is waited for.
local function join(all)
  if all.only then
    call('HSET', held, all.first, lasting_until(all.value, all.only.ends), '1all', all_text(all))
    call('HDEL', held, '1s' .. all.first:sub(3))
    all.only, fields = nil, nil
  end
end

-- admit lets a claim hold with the token that it got.
local function admit(all, now, id, c, lasts, fence, span)
  local ends, free = now + lasts, all.sum == 0
  join(all)
  all.sum = all.sum + c.weight
  if ends < all.min then
    all.min, all.first = ends, '1c' .. id
  end
  all.phase, fields = shared(c) and fence or 0, nil
  call('HSET', held, '1all', all_text(all), '1c' .. id, claim_text({
    ends = ends, weight = c.weight, limit = c.limit, fence = fence, span = span, since = now, left = '', details = c.details,
  }))
  if free or left_of(held) < lasts then
    call('PEXPIRE', held, lasting(lasts))
  end
end

-- placed returns the place of a value, nil if there is none; nil and the format of
-- one of a newer release.
local function placed(value)
  local format = newer(value)
  if format then
    return nil, format
  end
  return value and read_place(value)
end

local function leave(id)
  head = nil
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

-- push tells the owner of a place of its grant, whose time counts from when it
-- asked: now at the latest, though the clock may have been set back since. Where
-- publishing is forbidden, it finds out when it asks again.
local function push(p, id, fence, span, now)
  if p.push ~= '' then
    local how = p.push:sub(1, 1) == 's' and 'SPUBLISH' or 'PUBLISH'
    local message = table.concat({ 'g', text(fence), span, text(math.max(now - p.asked, 0) + p.alive), id }, ' ')
    redis.pcall(how, p.push:sub(2), message)
  end
end

-- handoff lets in those in line, first come first, while the next one fits.
-- Whoever is not listening is passed over and keeps its place until it asks
-- itself: that is asker, whose token and span are returned if it was let in, or
-- false if there are no more tokens.
local function handoff(all, now, asker)
  local at, given, spans = 0, nil, nil
  for _ = 1, MOST do
    local id, value = head, place
    if not id then
      id = call('LINDEX', line, at)
      if not id then
        break
      end
      value = call('HGET', places, id)
    end
    head = nil
    local p, format = placed(value)
    if format then
      break -- Nobody passes a claim of a newer release.
    elseif not p or p.ends <= now then
      leave(id)
    elseif all.sum > p.limit - p.weight then
      break
    elseif id ~= asker and absent(p) then
      at = at + 1
    else
      local fence, span = token(all, now, p, 0)
      if not fence then
        return given or false, spans
      end
      leave(id)
      if id == asker then
        given, spans = fence, span
        admit(all, now, id, p, p.ttl, fence, span)
      else
        admit(all, now, id, p, p.alive, fence, span)
        push(p, id, fence, span, now)
      end
      if all.sum >= 1099511627776 then
        break -- Nothing fits beside the whole key.
      end
    end
  end
  return given, spans
end

-- drop ends a claim, held or in line. It returns the claim, nil if it had run
-- out or never was, and what the others are together; of the record of a newer
-- release nil, nil and the format.
local function drop(id, now)
  local all, format = load(now)
  if format then
    return nil, nil, format
  end
  local value = field('1c' .. id)
  fields = nil
  if all.only and all.first == '1c' .. id then
    call('DEL', held)
    return all.only, nothing()
  end
  if not value then
    local p = placed(call('HGET', places, id))
    if p then
      leave(id)
    end
    return p and p.ends > now and p or nil, all
  end
  local c = read_claim(value)
  all.sum = all.sum - c.weight
  if all.sum == 0 then
    call('DEL', held)
    return c, nothing()
  end
  call('HDEL', held, '1c' .. id)
  if all.first == '1c' .. id then
    all.first = ''
  end
  call('HSET', held, '1all', all_text(all))
  return c, all
end
