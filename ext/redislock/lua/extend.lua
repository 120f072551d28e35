-- extend lets a claim that holds stand for ttl from now and returns its token,
-- its span, and for how long it stands; nil if it is gone. Once its owner has
-- left, nothing changes when it ends. Its token becomes at least raised.
--
-- PEXPIRE comes first: a full server allows it, and what the script writes
-- after it.
local function extend(held, id, now, ttl, leaves, raised)
  local field = 'c' .. id
  local claim, all = call('HGET', held, field), call('HGET', held, 'all')
  if not claim then
    return nil
  end
  local ends, weight, limit, fence, span, since, left, client, owner, note = unpack(claim)
  if not all then
    ends = now + left_of(held)
  elseif ends <= now then
    return nil
  end
  local stands = left and ends - now or ttl
  if not all or left_of(held) < stands then
    call('PEXPIRE', held, lasting(stands))
  end
  fence = math.max(fence, raised)
  if all or leaves then
    local sum, min, first, phase = weight, now + stands, field, shared(weight, limit) and fence or 0
    if all then
      sum, min, first, phase = unpack(all)
    end
    if now + stands < min then
      min, first = now + stands, field
    end
    if phase > 0 and shared(weight, limit) then
      phase = math.max(phase, fence)
    end
    call('HSET', held, 'all', pack(sum, min, first, phase))
  end
  call('HSET', held, field, pack(now + stands, weight, limit, fence, span, since, left or leaves, client, owner, note))
  return fence, span, stands
end
