-- forget leaves of a record its token, or a larger one, and its time.
--
--   KEYS  record
--   ARGV  token
--
-- It returns state and token of the record as it was.

-- include older

local was = redis.call('HMGET', KEYS[1], 'state', 'token')
if was[1] and not older(ARGV[1], was[2]) then
  redis.call('HSET', KEYS[1], 'state', '0', 'token', ARGV[1], 'print', '')
  redis.call('HDEL', KEYS[1], 'result')
end
return was
