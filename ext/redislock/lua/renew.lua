-- renew lets claims that hold stand for longer. It creates and revives nothing.
--
--   KEYS  of each claim: held
--   ARGV  of each claim: id, ttl, leaves ("1" or "")
--
-- It returns, for each claim, 1 if it is kept and 0 if it is gone.
local now, kept = clock(), {}
for i, held in ipairs(KEYS) do
  local id, ttl, leaves = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i] == '1'
  kept[i] = extend(held, id, now, ttl, leaves) and 1 or 0
end
return kept
