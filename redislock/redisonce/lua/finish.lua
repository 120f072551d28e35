-- finish remembers the result of who has begun.
--
--   KEYS  record
--   ARGV  token, result, milliseconds to keep it
--
-- It returns state and token of the record as it was.

local was = redis.call('HMGET', KEYS[1], 'state', 'token')
if was[1] == '1' and was[2] == ARGV[1] then
  redis.call('HSET', KEYS[1], 'state', '2', 'result', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return was
