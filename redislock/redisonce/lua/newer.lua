-- newer reports whether a record has the format of a newer release, which may change
-- every field but format.
local function newer(format)
  return format and format ~= '1'
end
