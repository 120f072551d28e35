-- forget leaves of a record its token, or a larger one, and its time.
--
--   KEYS  record
--   ARGV  token
--
-- It returns format, state and token of the record as it was.

-- include older
-- include newer

local was = redis.call('HMGET', KEYS[1], 'format', 'state', 'token')
if not newer(was[1]) and was[2] and not older(ARGV[1], was[3]) then
  redis.call('HSET', KEYS[1], 'state', '0', 'token', ARGV[1], 'print', '')
  redis.call('HDEL', KEYS[1], 'result')
end
return was
