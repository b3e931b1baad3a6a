-- Asks a proxy for stored responses, each chosen at random: COUNT of them, as StoreBench names them.
local count = tonumber(os.getenv("COUNT"))
local thread = 0

function setup(worker)
    thread = thread + 1
    worker:set("seed", thread)
end

function init()
    math.randomseed(seed)
end

function request()
    local number = math.random(0, count - 1)
    local host = string.format("bench%d.test", number % 997)
    local target = string.format("http://%s/store/objects/%d?v=1", host, number)
    return wrk.format("GET", target, { Host = host })
end
