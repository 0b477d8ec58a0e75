-- Arguments after the address: the method and, where there is one, the body.
function init(args)
  wrk.method = args[1]
  wrk.body = args[2]
end

done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local form = '\n{"requests":%d,"seconds":%f,"p99Ms":%f,"failed":%d}\n'
  local seconds, p99Ms = summary.duration / 1e6, latency:percentile(99) / 1000
  io.write(string.format(form, summary.requests, seconds, p99Ms, failed))
end
