-- holders returns the claims that hold, in the order of their grants as far as
-- their times tell it, then those in line, first come first.
--
--   KEYS  held, line, places
--
-- It returns, for each claim, {id, ends in, weight, limit, fence, since, owner, note}.

-- include claim

local held, line, places = KEYS[1], KEYS[2], KEYS[3]
local now, found = clock(), {}
local fields = call('HGETALL', held)
local only = #fields == 2
for i = 1, #fields, 2 do
  if fields[i] ~= 'all' then
    local ends, weight, limit, fence, _, since, _, _, owner, note = unpack(fields[i + 1])
    if only then
      ends = now + left_of(held)
    end
    if ends > now then
      found[#found + 1] = { fields[i]:sub(2), ends - now, weight, limit, fence, since, owner, note }
    end
  end
end
table.sort(found, function(a, b)
  return a[6] < b[6] or a[6] == b[6] and a[1] < b[1]
end)
for _, id in ipairs(call('LRANGE', line, 0, -1)) do
  local fields = call('HGET', places, id)
  if fields then
    local ends, weight, limit, _, since, _, _, _, _, _, owner, note = unpack(fields)
    if ends > now then
      found[#found + 1] = { id, ends - now, weight, limit, 0, since, owner, note }
    end
  end
end
return found
