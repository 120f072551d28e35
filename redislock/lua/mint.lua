-- LEAD is for how many microseconds tokens may be ahead of the clock.
local LEAD = 4096

-- given returns the highest token given; nil if the floor is no whole number
-- below 2^53, where neighbours cannot be told apart. No comparison is true of
-- nan, and tokens are compared without sums, which would be rounded. Without a
-- floor, the server has lost it: no token was ahead by more than LEAD.
local function given(floor, now)
  local value = redis.call('GET', floor)
  local last = value and tonumber(value) or not value and now + LEAD
  return last and last >= 0 and last < 9007199254740992 and last % 1 == 0 and last or nil
end

-- following returns the first of up to span tokens after the last, and how many
-- there are. The first is the clock, the next number or least, whichever is
-- largest. A claim takes a quarter of the lead that is left, so that the claims
-- behind get spans too.
local function following(last, now, span, least)
  local left = math.max(now, least) + LEAD - last
  return math.max(now, last + 1, least), math.max(math.min(span, math.floor(left / 4)), 1)
end

-- mint returns the first of up to span tokens, and how many there are; nil if
-- there are none below 2^53, or the floor does not tell, and if least is more
-- than a day ahead.
local function mint(floor, now, span, least)
  local last = given(floor, now)
  if not last or least > math.max(now, last) + 86400000000 then
    return nil
  end
  local first, some = following(last, now, span, least)
  if first > 9007199254740992 - some then
    return nil
  end
  redis.call('SET', floor, string.format('%.0f', first + some - 1))
  return first, some
end
