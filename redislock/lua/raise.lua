-- raise is renew for one claim whose token shall be at least so much.
--
--   KEYS  held, floor
--   ARGV  id, ttl, leaves ("1" or ""), fence
--
-- It returns {1} if the claim is kept, {0} if it is gone, {-1, what the floor
-- says} if the token would be out of bounds, {-format} if a newer release has
-- written the record.

-- include mint
-- include claim
-- include extend

local held, floor = KEYS[1], KEYS[2]
local now, fence = clock(), tonumber(ARGV[4])
local last = given(floor, now)
if not last or fence > math.min(math.max(now, last) + 86400000000, 9007199254740992 - 256) then
  return { -1, call('GET', floor) or '' }
end
local token, span = extend(held, ARGV[1], now, tonumber(ARGV[2]), ARGV[3] == '1', fence)
if not token then
  return { absence(held) }
end
if token + span - 1 > last then
  call('SET', floor, text(token + span - 1))
end
return { 1 }
