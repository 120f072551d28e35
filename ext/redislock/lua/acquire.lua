-- acquire asks for a claim, once.
--
--   ARGV  id, weight, limit, ttl, alive, wait ("1" or ""), span, least, push, client, owner, note
--
-- It returns {1, fence, span, ttl} if the claim holds; {0} or {0, retry} if not,
-- or {0, retry, id, ends in, weight, limit, fence, since, owner, note} of a claim
-- in the way; {-1} if the token would be out of bounds.

-- include claim
-- include grant

local id, ttl, least, now = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[8]), clock()
local c = {
  weight = tonumber(ARGV[2]), limit = tonumber(ARGV[3]), span = tonumber(ARGV[7]),
  client = ARGV[10], owner = ARGV[11], note = ARGV[12],
}

-- The usual case: nobody else wants the key.
if call('EXISTS', held, KEYS[3], KEYS[4]) == 0 then
  local fence, span = token(nothing(), now, c, least)
  if not fence then
    return { -1 }
  end
  write(now, id, c, ttl, fence, span)
  call('PEXPIRE', held, lasting(ttl))
  return { 1, fence, span, ttl }
end

-- include extend
-- include book

local wait, alive = ARGV[6] == '1', tonumber(ARGV[5])

local function grant(all)
  local fence, span = token(all, now, c, least)
  if not fence then
    return { -1 }
  end
  admit(all, now, id, c, ttl, fence, span)
  return { 1, fence, span, ttl }
end

local function refuse(all)
  if all.sum == 0 then
    return { 0 }
  end
  local claim = call('HGET', held, all.first)
  if not claim then
    all = prune(now, all.phase)
    claim = call('HGET', held, all.first)
    if not claim then
      return { 0 }
    end
  end
  local ends, weight, limit, fence, _, since, _, _, owner, note = unpack(claim)
  ends = all.only and all.min or ends
  return { 0, ends - now, all.first:sub(2), ends - now, weight, limit, fence, since, owner, note }
end

-- enqueue gives the claim a place in line, or lets it keep the one it has. A
-- full server refuses a new one; it allows PEXPIRE, and what comes after it.
local function enqueue()
  local p = standing(id)
  if p then
    call('PEXPIRE', line, KEEP)
  else
    call('RPUSH', line, id)
    call('PEXPIRE', line, KEEP)
    p = { since = now }
  end
  c.ends, c.since, c.asked, c.ttl, c.alive, c.push = now + alive, p.since, now, ttl, alive, ARGV[9]
  stand(id, c)
  call('PEXPIRE', places, KEEP)
end

local fence, span, stands = extend(held, id, now, ttl, false, 0)
if fence then
  return { 1, fence, span, stands }
end
if call('EXISTS', tomb) == 1 then
  return { 0, call('PTTL', tomb) * 1000 }
end
local all = load(now)
if call('LLEN', line) == 0 and all.sum <= c.limit - c.weight then
  return grant(all)
end
if wait then
  enqueue()
end
fence, span = handoff(all, now, id)
if fence then
  return { 1, fence, span, ttl }
end
if not wait and call('LLEN', line) == 0 and all.sum <= c.limit - c.weight then
  return grant(all)
end
return refuse(all)
