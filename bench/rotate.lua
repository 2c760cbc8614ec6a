-- Sends the bodies of the file BODIES, one a line, in turn.
local bodies = {}
for line in io.lines(os.getenv("BODIES")) do
  bodies[#bodies + 1] = line
end

local position = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")

request = function()
  position = position % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[position])
end
