-- renew lets claims that hold stand for longer. It creates and revives nothing.
--
--   KEYS  of each claim: held
--   ARGV  of each claim: id, ttl, leaves ("1" or "")
--
-- It returns, for each claim, 1 if it is kept, 0 if it is gone, -format if a newer
-- release has written the record.

-- include claim
-- include extend

local now, kept = clock(), {}
for i, held in ipairs(KEYS) do
  local id, ttl, leaves = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i] == '1'
  -- The usual case: the only claim on its key, which lives as long.
  if not leaves and call('HEXISTS', held, '1s' .. id) == 1 then
    kept[i] = call('PEXPIRE', held, lasting(ttl))
  else
    kept[i] = extend(held, id, now, ttl, leaves, 0) and 1 or absence(held)
  end
end
return kept
