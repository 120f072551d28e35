-- acquire_many asks for claims on the same terms of which each is likely to be
-- the only one on its key, and leaves the others to acquire.
--
--   KEYS  floor; of each claim: held, places, tomb
--   ARGV  weight, limit, ttl, span, details; of each claim: id, least
--
-- It returns for each claim what acquire does, and 0 for one that it has left
-- alone, with which nothing has happened.

-- include mint

local call, asked, ttl = redis.call, tonumber(ARGV[4]), tonumber(ARGV[3])
local t = call('TIME')
local now = t[1] * 1000000 + t[2]

-- The tokens of the free claims.
local last = given(KEYS[1], now)
local top, fits, tokens, spans = last, last, {}, {}
local free, seen, replies = {}, {}, {}
for n = 1, (#ARGV - 5) / 2 do
  local held, least = KEYS[3 * n - 1], tonumber(ARGV[2 * n + 5])
  replies[n] = 0
  if fits and not seen[held] and call('EXISTS', held, KEYS[3 * n], KEYS[3 * n + 1]) == 0 then
    seen[held], free[#free + 1] = true, n
    tokens[n], spans[n] = following(top, now, asked, least)
    top = tokens[n] + spans[n] - 1
    fits = top < 9007199254740992 and least <= math.max(now, last) + 86400000000
  end
end
-- A full server refuses this, but not all that acquire does.
if not fits or #free == 0 or redis.pcall('SET', KEYS[1], string.format('%.0f', top)).err then
  return replies
end
local before = string.format('0:%s:%s:', ARGV[1], ARGV[2])
local after = string.format(':%.0f::', now) .. ARGV[5]
for _, n in ipairs(free) do
  local held, token, span = KEYS[3 * n - 1], tokens[n], spans[n]
  call('HSET', held, '1s' .. ARGV[2 * n + 4], before .. string.format('%.0f:%.0f', token, span) .. after)
  call('PEXPIRE', held, math.ceil(ttl / 1000))
  replies[n] = span == asked and token or { 1, token, span, ttl }
end
return replies
