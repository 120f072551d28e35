-- extend lets a claim that holds stand for ttl from now and returns its token,
-- its span, and for how long it stands; nil if it is gone. Once its owner has
-- left, nothing changes when it ends. Its token becomes at least raised. With
-- again, the token of a reader becomes that of the readers beside it, if that was
-- raised.
--
-- PEXPIRE comes first: a full server allows it, and what the script writes
-- after it.
local function extend(held, id, now, ttl, leaves, raised, again)
  local value, all = call('HGET', held, '1s' .. id), nil
  if not value then
    value = call('HGET', held, '1c' .. id)
    all = value and call('HGET', held, '1all')
  end
  if not value then
    return nil
  end
  local c = read_claim(value)
  if not all then
    c.ends = now + left_of(held)
  elseif c.ends <= now then
    return nil
  end
  local stands = c.left == 'L' and c.ends - now or ttl
  call('PEXPIRE', held, lasting(all and math.max(stands, left_of(held)) or stands))
  c.ends, c.fence = now + stands, math.max(c.fence, raised)
  if not all and not leaves then
    call('HSET', held, '1s' .. id, claim_text(c))
    return c.fence, c.span, stands
  end
  local sum = together(id, c)
  if all then
    sum = read_all(all)
    if c.ends < sum.min then
      sum.min, sum.first = c.ends, '1c' .. id
    end
    if sum.phase > 0 and shared(c) then
      sum.phase = math.max(sum.phase, c.fence)
      c.fence = again and sum.phase or c.fence
    end
  end
  c.left = leaves and 'L' or c.left
  call('HSET', held, '1c' .. id, claim_text(c), '1all', all_text(sum))
  if not all then
    call('HDEL', held, '1s' .. id)
  end
  return c.fence, c.span, stands
end
