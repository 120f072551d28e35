-- release ends a claim, held or in line, and lets in those behind it.
--
--   ARGV  id, late: for how many milliseconds the id is refused, 0 for not at all
--
-- It returns 1 if there was such a claim, 0 if not.
local now = clock()
local c, all = drop(ARGV[1], now)
if ARGV[2] ~= '0' then
  call('SET', tomb, 'late', 'PX', ARGV[2])
end
handoff(all, now)
return c and 1 or 0
