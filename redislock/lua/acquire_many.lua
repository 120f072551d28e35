-- acquire_many asks for claims on the same terms of which each is likely to be
-- the only one on its key, and leaves the others to acquire.
--
--   KEYS  floor; of each claim: held, places, tomb
--   ARGV  weight, limit, ttl, span, details; of each claim: id, least
--
-- It returns the token of each claim, 0 for one that it has left alone, with
-- which nothing has happened.

-- include given

local call, span, count = redis.call, ARGV[4], (#ARGV - 5) / 2
local t, last = call('TIME'), given(KEYS[1])
local now = t[1] * 1000000 + t[2]
local token, tokens = last and math.max(now, last + 1), {}
local fits, most = last, token
if fits then
  -- most is the number after the last token, if every claim is free.
  for n = 1, count do
    most = math.max(most, tonumber(ARGV[2 * n + 5])) + span
    fits = fits and tonumber(ARGV[2 * n + 5]) <= math.max(now, last) + 86400000000
  end
  fits = fits and most <= 9007199254740992
end
if fits then
  -- A full server refuses this, but not all that acquire does.
  fits = not redis.pcall('SET', KEYS[1], string.format('%.0f', most - 1)).err
end
local before = string.format('0:%s:%s:', ARGV[1], ARGV[2])
local after = string.format(':%s:%.0f::', span, now) .. ARGV[5]
local ttl = math.ceil(ARGV[3] / 1000)
for n = 1, count do
  local held = KEYS[3 * n - 1]
  if fits and call('EXISTS', held, KEYS[3 * n], KEYS[3 * n + 1]) == 0 then
    token = math.max(token, tonumber(ARGV[2 * n + 5]))
    call('HSET', held, '1s' .. ARGV[2 * n + 4], before .. string.format('%.0f', token) .. after)
    call('PEXPIRE', held, ttl)
    tokens[n], token = token, token + span
  else
    tokens[n] = 0
  end
end
return tokens
