--   KEYS  the register, its records
--   ARGV  token, value or 0 for a look, record
if ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], 'value', ARGV[2])
end
redis.call('RPUSH', KEYS[2], ARGV[3])
return redis.call('HGET', KEYS[1], 'value') or '0'
