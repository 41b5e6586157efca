"""The pools of `cotrail.engines.rate_limits.pools` in Redis, as a script in Lua: one call is one atomic change.

Times are those of Redis, so that clocks of machines don't matter. A pool that nobody uses for an hour is forgotten.
"""

from cotrail.engines.rate_limits.pools import (
    CLEAN_SECONDS,
    DECREASE,
    FIRST_PAUSE,
    INCREASE,
    LONGEST_PAUSE,
    MINUTE,
    SMOOTHING_SECONDS,
    USED,
)

SCRIPT = f"""
local now = redis.call('TIME')
now = tonumber(now[1]) + tonumber(now[2]) / 1000000
local names = {{'free1', 'free2', 'free3', 'free4', 'paused', 'refusals', 'rate', 'changed', 'seen', 'asked'}}
local values = redis.call('HMGET', KEYS[1], unpack(names))
local pool = {{}}
for place, name in ipairs(names) do pool[name] = tonumber(values[place] or '0') end
local limits = {{tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])}}
local amounts = {{tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])}}
local last = tonumber(ARGV[10])
local answer = 0

if ARGV[1] == 'reserve' then
    local rates = {{}}
    for place = 1, 4 do rates[place] = limits[place] * {USED} / {MINUTE} end
    if pool.rate > 0 and now - pool.changed > {CLEAN_SECONDS} then
        pool.rate, pool.changed, pool.refusals = pool.rate * {INCREASE}, now, 0
    end
    if limits[1] == 0 then rates[1] = pool.rate end
    local start = math.max(now, pool.paused)
    for place = 1, 4 do
        if rates[place] > 0 then start = math.max(start, pool['free' .. place]) end
    end
    answer = start - now
    if answer <= last then
        for place = 1, 4 do
            if rates[place] > 0 then
                local name = 'free' .. place
                pool[name] = math.max(pool[name], start) + amounts[place] / rates[place]
            end
        end
        pool.seen = pool.seen * math.exp((pool.asked - start) / {SMOOTHING_SECONDS}) + 1 / {SMOOTHING_SECONDS}
        pool.asked = start
    end
elseif ARGV[1] == 'settle' then
    for place = 1, 4 do
        if limits[place] > 0 then
            local name = 'free' .. place
            pool[name] = pool[name] + amounts[place] * {MINUTE} / (limits[place] * {USED})
        end
    end
elseif ARGV[1] == 'refused' then
    if now >= pool.paused then
        pool.refusals = pool.refusals + 1
        if pool.rate == 0 then pool.rate = pool.seen end
        pool.rate = pool.rate * {DECREASE}
        pool.changed = now
    end
    local seconds = last
    if seconds < 0 then seconds = math.min({FIRST_PAUSE} * 2 ^ math.min(pool.refusals - 1, 10), {LONGEST_PAUSE}) end
    pool.paused = math.max(pool.paused, now + seconds)
else
    return tostring(math.max(0, pool.paused - now))
end
local written = {{}}
for _, name in ipairs(names) do
    table.insert(written, name)
    table.insert(written, string.format('%.6f', pool[name]))
end
redis.call('HSET', KEYS[1], unpack(written))
redis.call('EXPIRE', KEYS[1], 3600)
return tostring(answer)
"""
