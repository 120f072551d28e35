-- holders returns the claims that hold, in the order of their grants as far as
-- their times tell it, then those in line, first come first.
--
--   KEYS  held, line, places
--
-- It returns, for each claim, {id, ends in, weight, limit, token, since, details};
-- -format if a newer release has written the record.

-- include claim
-- include place

local held, line, places = KEYS[1], KEYS[2], KEYS[3]
local now, found = clock(), {}
local fields = call('HGETALL', held)
local format = newer(fields[1])
if format then
  return -format
end
for i = 1, #fields, 2 do
  if fields[i] ~= '1all' then
    local c = read_claim(fields[i + 1])
    if fields[i]:sub(1, 2) == '1s' then
      c.ends = now + left_of(held)
    end
    if c.ends > now then
      found[#found + 1] = { fields[i]:sub(3), c.ends - now, c.weight, c.limit, c.fence, c.since, c.details }
    end
  end
end
table.sort(found, function(a, b)
  return a[6] < b[6] or a[6] == b[6] and a[1] < b[1]
end)
for _, id in ipairs(call('LRANGE', line, 0, -1)) do
  local value = call('HGET', places, id)
  format = value and newer(value)
  if format then
    return -format
  end
  local p = value and read_place(value)
  if p and p.ends > now then
    found[#found + 1] = { id, p.ends - now, p.weight, p.limit, 0, p.since, p.details }
  end
end
return found
