-- How a claim comes to hold.
--
--   KEYS[1] held    the claims that hold
--   KEYS[5] floor   the highest token given in this slot; it never expires
local held, floor = KEYS[1], KEYS[5]

-- mint returns the first of span tokens: the clock, the next number or least,
-- whichever is largest. It returns nil beyond 2^53, where neighbours cannot be
-- told apart, and if least is more than a day ahead.
local function mint(now, span, least)
  local last = tonumber(call('GET', floor) or 0)
  local first = math.max(now, last + 1, least)
  if first + span > 9007199254740992 or least > math.max(now, last) + 86400000000 then
    return nil
  end
  call('SET', floor, text(first + span - 1))
  return first
end

-- token returns the token and the span that a claim would get.
local function token(all, now, c, least)
  if not shared(c.weight, c.limit) then
    return mint(now, c.span, least), c.span
  elseif all.phase > 0 then
    return all.phase, 1
  end
  return mint(now, 1, least), 1
end

-- nothing is what no claims are in sum.
local function nothing()
  return { sum = 0, min = math.huge, first = '', phase = 0 }
end

local function write(now, id, c, lasts, fence, span)
  call('HSET', held, 'c' .. id, pack(now + lasts, c.weight, c.limit, fence, span, now, false, c.client, c.owner, c.note))
end
