-- older compares tokens, which may be larger than the numbers that Lua knows.
local function older(a, b)
  return #a < #b or #a == #b and a < b
end
