-- begin remembers that an effect was begun, unless it is done, a larger token has
-- begun, or it was begun with another fingerprint.
--
--   KEYS  record
--   ARGV  token, fingerprint, milliseconds to keep it
--
-- It returns the record as it was: format, state, token, fingerprint and result.

-- include older
-- include newer

local was = redis.call('HMGET', KEYS[1], 'format', 'state', 'token', 'print', 'result')
if newer(was[1]) then
  return was
end
local state, token, print = was[2], was[3], was[4]
if not state or state ~= '2' and not older(ARGV[1], token) and (state == '0' or print == ARGV[2]) then
  redis.call('HSET', KEYS[1], 'format', '1', 'state', '1', 'token', ARGV[1], 'print', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return was
