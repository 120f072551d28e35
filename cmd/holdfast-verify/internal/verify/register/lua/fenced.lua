-- A smaller token than the highest is refused. Tokens are compared as text, since
-- numbers of Lua are exact up to 2^53 only.
local token, highest = ARGV[1], redis.call('HGET', KEYS[1], 'fence') or '0'
if #token < #highest or #token == #highest and token < highest then
  return redis.error_reply('OUTDATED ' .. highest .. ' has been seen')
end
redis.call('HSET', KEYS[1], 'fence', token)
