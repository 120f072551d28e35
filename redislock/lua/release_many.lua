-- release_many ends claims of which each is likely to be the only one on a key
-- for which nobody waits, and leaves the others to release.
--
--   KEYS  of each claim: held
--   ARGV  of each claim: id
--
-- It returns 1 for each claim that has ended, 0 for one that it has left alone.
local ended = {}
for n, id in ipairs(ARGV) do
  ended[n] = redis.call('HDEL', KEYS[n], '1s' .. id)
end
return ended
