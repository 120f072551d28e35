-- given returns the highest token given; nil if the floor is no whole number
-- below 2^53, where neighbours cannot be told apart. No comparison is true of
-- nan, and tokens are compared without sums, which would be rounded.
local function given(floor)
  local last = tonumber(redis.call('GET', floor) or 0)
  return last and last >= 0 and last < 9007199254740992 and last % 1 == 0 and last or nil
end
