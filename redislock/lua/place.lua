-- A place in line is a field of the hash "places" of a key: id ->
--
--   1:ends:weight:limit:span:since:asked:ttl:alive:length:push details
--
-- where 1 is the format of the record, and push, of so many bytes, says how to
-- reach its owner: "p" and a channel, "s" and a sharded one, or nothing. There is no space before the details.
local function read_place(value)
  local p, ends, weight, limit, span, since, asked, ttl, alive, length, rest = {}, value:match('^1:(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
  p.ends, p.weight, p.limit, p.span = tonumber(ends), tonumber(weight), tonumber(limit), tonumber(span)
  p.since, p.asked, p.ttl, p.alive = tonumber(since), tonumber(asked), tonumber(ttl), tonumber(alive)
  p.push, p.details = rest:sub(1, tonumber(length)), rest:sub(length + 1)
  return p
end
