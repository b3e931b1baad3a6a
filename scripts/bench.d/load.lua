-- Loads a proxy with requests in absolute form, which wrk has no option for.
--
--     wrk … -s load.lua http://127.0.0.1:PROXY/ -- http://127.0.0.1:ORIGIN /hit/1k/ COUNT
--
-- COUNT > 0: the paths PREFIX0 … PREFIX(COUNT-1), over and over, prepared before the clock runs.
-- COUNT = 0: a path that was never asked for before, each time (PREFIX must be new for each run).
-- A fourth word, "varied": no two requests have the same bytes, as where clients number them.
-- Ends with one line of JSON: the totals and latencies, which wrk otherwise rounds.

local prepared = {}
local position = 0
local prefix, headers, unique, varied

function init(args)
   local origin = args[1]
   local count = tonumber(args[3])
   prefix = origin .. args[2]
   headers = { ["Host"] = origin:gsub("^http://", "") }
   unique = count == 0
   varied = args[4] == "varied" and count
   for i = 0, count - 1 do
      prepared[i + 1] = wrk.format("GET", prefix .. i, headers)
   end
end

function request()
   position = position + 1
   if varied then
      headers["X-Request-Id"] = position
      return wrk.format("GET", prefix .. position % varied, headers)
   end
   if unique then
      return wrk.format("GET", prefix .. position, headers)
   end
   if position > #prepared then
      position = 1
   end
   return prepared[position]
end

function done(summary, latency, requests)
   local e = summary.errors
   io.write(string.format(
      '\nLOAD {"requests": %d, "microseconds": %d, "bytes": %d, "p50": %d, "p99": %d, ' ..
         '"failed_sockets": %d, "failed_statuses": %d}\n',
      summary.requests, summary.duration, summary.bytes,
      latency:percentile(50), latency:percentile(99),
      e.connect + e.read + e.write + e.timeout, e.status))
end
