-- holders returns the claims that hold, in the order of their grants as far as
-- their times tell it, then those in line, first come first.
--
--   KEYS  held, line, places
--
-- It returns, for each claim, {id, ends in, weight, limit, token, since, details}.

-- include claim
-- include place

local held, line, places = KEYS[1], KEYS[2], KEYS[3]
local now, found = clock(), {}
local fields = call('HGETALL', held)
for i = 1, #fields, 2 do
  if fields[i] ~= 'all' then
    local c = read_claim(fields[i + 1])
    if fields[i]:sub(1, 1) == 's' then
      c.ends = now + left_of(held)
    end
    if c.ends > now then
      found[#found + 1] = { fields[i]:sub(2), c.ends - now, c.weight, c.limit, c.fence, c.since, c.details }
    end
  end
end
table.sort(found, function(a, b)
  return a[6] < b[6] or a[6] == b[6] and a[1] < b[1]
end)
for _, id in ipairs(call('LRANGE', line, 0, -1)) do
  local value = call('HGET', places, id)
  local p = value and read_place(value)
  if p and p.ends > now then
    found[#found + 1] = { id, p.ends - now, p.weight, p.limit, 0, p.since, p.details }
  end
end
return found
