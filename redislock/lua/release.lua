-- release ends a claim, held or in line, and lets in those behind it.
--
--   ARGV  id, late: for how many milliseconds the id is refused, 0 for not at all
--
-- It returns 1 if there was such a claim, 0 if not, -format if a newer release has
-- written the record.

-- The usual case: the only claim on a key for which nobody waits.
if ARGV[2] == '0' and redis.call('HDEL', KEYS[1], '1s' .. ARGV[1]) == 1 then
  return 1
end

-- include claim
-- include mint
-- include book

local now = clock()
local c, all, format = drop(ARGV[1], now)
if format then
  return -format
end
if ARGV[2] ~= '0' then
  local why, stands = call('GET', tomb) or 'late', call('PTTL', tomb)
  call('DEL', tomb) -- A full server allows this, and what comes after it.
  call('SET', tomb, why, 'PX', math.max(tonumber(ARGV[2]), stands))
end
handoff(all, now)
return c and 1 or 0
