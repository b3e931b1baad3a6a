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
    return wrk.format("GET", string.format(
        "http://bench%d.test/store/objects/%d?v=1", number % 997, number))
end
