-- break ends a claim, held or in line, against its owner's will, and lets in
-- those behind it.
--
--   ARGV  id, late: for how many milliseconds the id is refused at least
--
-- It returns the claim's details, nil if there was none, -format if a newer release
-- has written the record.

-- include claim
-- include mint
-- include book

local now = clock()
local c, all, format = drop(ARGV[1], now)
if format then
  return -format
end
if not c then
  handoff(all, now)
  return nil
end
call('SET', tomb, 'broken', 'PX', math.max(lasting(c.ends - now), tonumber(ARGV[2])))
handoff(all, now)
return c.details
