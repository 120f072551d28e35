-- release_many ends claims of which each is likely to be the only one on a key
-- for which nobody waits, and leaves the others to release.
--
--   KEYS  of each claim: held, places
--   ARGV  of each claim: id
--
-- It returns 1 for each claim that has ended, 0 for one that it has left alone.
local ended = {}
for n, id in ipairs(ARGV) do
  ended[n] = 0
  if redis.call('EXISTS', KEYS[2 * n]) == 0 then
    ended[n] = redis.call('HDEL', KEYS[2 * n - 1], 's' .. id)
  end
end
return ended
