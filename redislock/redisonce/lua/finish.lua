-- finish remembers the result of who has begun.
--
--   KEYS  record
--   ARGV  token, result, milliseconds to keep it
--
-- It returns format, state and token of the record as it was.

-- include newer

local was = redis.call('HMGET', KEYS[1], 'format', 'state', 'token')
if not newer(was[1]) and was[2] == '1' and was[3] == ARGV[1] then
  redis.call('HSET', KEYS[1], 'state', '2', 'result', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return was
