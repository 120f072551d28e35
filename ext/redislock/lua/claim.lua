-- What every script knows of claims. Times are microseconds of the server's
-- clock, which each script reads once: some versions let it move within one.
--
-- A claim that holds is a field "c" .. id of the hash "held" of its key:
--
--   ends, weight, limit, fence, span, since, left, client, owner, note
--
-- and the field "all" is what they are in sum:
--
--   sum    of their weights
--   min    no later than the end of the first to run out
--   first  the field that this was when it was last looked up
--   phase  the token that the readers among them share, 0 if none
--
-- The hash lives as long as the longest claim, or a little longer.
local call, pack, unpack = redis.call, cmsgpack.pack, cmsgpack.unpack
local WHOLE = 1099511627776 -- the limit of readers and writers
local TOKENS = 9007199254740992 -- beyond, neighbours cannot be told apart
local LEAD = 86400000000 -- by which a token that is asked for may be ahead

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

-- text is a whole number as it is: tostring would round it.
local function text(n)
  return string.format('%.0f', n)
end

local function milliseconds(us)
  return math.max(math.ceil(us / 1000), 1)
end

local function shared(weight, limit)
  return limit == WHOLE and weight < limit
end

-- too_high reports whether a token that is asked for is out of bounds.
local function too_high(fence, now, last)
  return fence > math.max(now, last) + LEAD
end

-- stretch lets the hash live for so long at least. A full server allows it, and
-- whatever the script writes after it.
local function stretch(held, lasts, alone)
  local ttl = milliseconds(lasts)
  if alone or call('PTTL', held) < ttl then
    call('PEXPIRE', held, ttl)
  end
end

-- extend lets a claim that holds stand for ttl from now and returns its token,
-- its span, and for how long it stands; nil if it is gone. Once its owner has
-- left, nothing changes when it ends. Its token becomes at least raised.
local function extend(held, id, now, ttl, leaves, raised)
  local field = 'c' .. id
  local claim = call('HGET', held, field)
  if not claim then
    return nil
  end
  local ends, weight, limit, fence, span, since, left, client, owner, note = unpack(claim)
  if ends <= now then
    return nil
  end
  local ending = left and ends or now + ttl
  stretch(held, ending - now, call('HLEN', held) == 2)
  if ending < ends then
    local sum, min, first, phase = unpack(call('HGET', held, 'all'))
    if ending < min then
      call('HSET', held, 'all', pack(sum, ending, field, phase))
    end
  end
  if raised and raised > fence then
    fence = raised
    if shared(weight, limit) then
      local sum, min, first, phase = unpack(call('HGET', held, 'all'))
      if phase > 0 then
        call('HSET', held, 'all', pack(sum, min, first, math.max(phase, fence)))
      end
    end
  end
  call('HSET', held, field, pack(ending, weight, limit, fence, span, since, left or leaves, client, owner, note))
  return fence, span, ending - now
end
