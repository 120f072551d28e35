-- given returns the highest token given; nil if the floor is no whole number
-- below 2^53, where neighbours cannot be told apart. No comparison is true of
-- nan. Without a floor, the server has lost it: no token was above the clock.
local function given(floor, now)
  local value = redis.call('GET', floor)
  local last = value and tonumber(value) or not value and now - 1
  return last and last >= 0 and last < 9007199254740992 and last % 1 == 0 and last or nil
end

-- mint returns the first of up to span tokens, how many there are, and the last.
-- The last is the clock or the next number, whichever is larger; with least, at
-- least the last of a span that begins there. The span consists of the numbers up
-- to the last that no claim has. So a span moves no token ahead of the clock, and
-- tokens grow even if the floor is lost. mint returns nil if there are none below
-- 2^53, or the floor does not tell, and if least is more than a day ahead.
local function mint(floor, now, span, least)
  local last = given(floor, now)
  local top = last and math.max(now, last + 1, least + span - 1)
  if not last or top >= 9007199254740992 or least > math.max(now, last) + 86400000000 then
    return nil
  end
  redis.call('SET', floor, string.format('%.0f', top))
  span = math.min(span, top - last)
  return top - span + 1, span, top
end
