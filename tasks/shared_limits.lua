-- The pools of `cotrail.engines.rate_limits.pools` in Redis: one call is one atomic change.
--
-- Times are those of Redis, so that clocks of machines don't matter. A pool that nobody uses for an hour is forgotten.
-- What stands in braces behind a dollar sign is a constant of that module.

local now = redis.call('TIME')
now = tonumber(now[1]) + tonumber(now[2]) / 1000000
local names = {'free1', 'free2', 'free3', 'free4', 'announced1', 'announced2', 'announced3', 'announced4', 'told_at', 'plan', 'paused',
    'refusals', 'refused_at', 'rate', 'changed', 'clean', 'refused', 'since', 'sent', 'seen', 'asked', 'line',
    'left'}
local values = redis.call('HMGET', KEYS[1], unpack(names))
local pool = {}
for place, name in ipairs(names) do pool[name] = tonumber(values[place] or '0') end
if pool.rate == 0 then pool.rate = ${FIRST_RATE} end
local limits = {tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])}
local amounts = {tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])}
local last = tonumber(ARGV[10])

local function rates()
    local found = {}
    for place = 1, 4 do
        local announced, limit = pool['announced' .. place], limits[place]
        if limit == 0 or (announced > 0 and announced < limit) then limit = announced end
        found[place] = limit * ${USED} / ${MINUTE}
    end
    if found[1] == 0 or pool.rate < found[1] then found[1] = pool.rate end
    return found
end

local function interval(rate) return ${USED} / ${APART} / rate end

local function following(rate)
    return pool.left + math.min(interval(rate), (3 * interval(rate) - 1) / 2)
end

local function start(rates)
    local at = math.max(now, pool.paused, following(rates[1]))
    for place = 1, 4 do
        if rates[place] > 0 then at = math.max(at, pool['free' .. place]) end
    end
    return at
end

local function grow()
    if pool.changed == 0 then pool.changed = now end
    local unrefused, factor = now - math.max(pool.changed, pool.paused), 1
    if pool.refused == 0 and unrefused > ${DOUBLING_SECONDS} then
        factor = 2
    elseif unrefused > ${CLEAN_SECONDS} then
        pool.clean, pool.refusals = pool.clean + 1, 0
        if pool.clean >= ${CLEAN} then pool.refused = 0 else pool.refused = 1 end
        factor = 1 + ${INCREASE} * pool.clean ^ 2
    end
    if factor > 1 then pool.rate, pool.changed = math.min(pool.rate * factor, ${HIGHEST_RATE}), now end
end

local function rate_left()
    local seconds = math.max(now - pool.since, 0.1)
    for place = 1, 4 do limits[place] = pool['announced' .. place] end
    local asked = rates()[1]
    if pool.seen > 0 and pool.refused == 0 then
        asked = math.min(asked, pool.seen / (1 - math.exp(-seconds / ${SMOOTHING_SECONDS})))
    end
    local least = asked * ${DECREASE}
    if pool.refusals == 1 and pool.sent < ${FEW} then least = asked * ${BELOW} end
    local left = math.max(${BELOW} * pool.sent / seconds, least)
    return math.max(${LOWEST_RATE}, math.min(asked, left))
end

local change = {}

function change.reserve()
    if now - math.max(pool.asked, pool.since) > ${SMOOTHING_SECONDS} then
        pool.since, pool.sent, pool.seen = now, 0, 0
        for place = 1, 4 do pool['free' .. place] = math.max(pool['free' .. place], now) end
    end
    grow()
    local rates = rates()
    local start = start(rates)
    if start - now <= last then
        for place = 1, 4 do
            if rates[place] > 0 then
                local name, earliest = 'free' .. place, start
                if place > 1 then earliest = start - ${CREDIT_SECONDS} end
                pool[name] = math.max(pool[name], earliest) + amounts[place] / rates[place]
            end
        end
        pool.seen = pool.seen * math.exp((pool.asked - start) / ${SMOOTHING_SECONDS}) + 1 / ${SMOOTHING_SECONDS}
        pool.asked = start
    end
    return start - now
end

function change.line_up()
    local rates = rates()
    local start = start(rates)
    local turn, seconds = pool.line, 0
    if turn < start or turn > start + ${LONGEST_LINE} then turn = start end
    for place = 1, 4 do
        if rates[place] > 0 then seconds = math.max(seconds, amounts[place] / rates[place]) end
    end
    pool.line = turn + seconds
    return turn - now
end

function change.leave()
    if pool.plan ~= last then return ${OUTDATED} end
    local rate = rates()[1]
    local late = following(rate) - now
    if late > 0 then return late end
    pool.left = math.max(pool.left + interval(rate), now)
    pool.sent = pool.sent + 1
    return 0
end

function change.settle()
    for place, rate in ipairs(rates()) do
        if rate > 0 then pool['free' .. place] = pool['free' .. place] + amounts[place] / rate end
    end
    return 0
end

local function plan_anew(start)
    pool.plan = pool.plan + 1
    for place = 1, 4 do pool['free' .. place] = math.min(pool['free' .. place], start) end
end

function change.tell()
    if now - last < pool.told_at then return 0 end
    pool.told_at = now - last
    local changed = false
    for place = 1, 4 do
        local name = 'announced' .. place
        changed = changed or pool[name] ~= limits[place]
        pool[name] = limits[place]
    end
    if changed then
        pool.refused, pool.line = 0, 0
        plan_anew(now)
    end
    return 0
end

function change.refused()
    pool.sent = math.max(0, pool.sent - 1)
    if now >= math.max(pool.paused, pool.refused_at + ${INCIDENT_SECONDS}) then
        if pool.sent >= ${FEW} then pool.refusals = 0 end
        pool.refusals = pool.refusals + 1
        pool.rate = rate_left()
        pool.changed, pool.since, pool.refused_at = now, now, now
        pool.sent, pool.clean, pool.refused = 0, 0, 1
    end
    local seconds = last
    if seconds < 0 then seconds = math.min(${FIRST_PAUSE} * 2 ^ math.min(pool.refusals - 1, 10), ${LONGEST_PAUSE}) end
    pool.paused = math.max(pool.paused, now + seconds)
    plan_anew(pool.paused)
    return 0
end

if ARGV[1] == 'plan' then return tostring(pool.plan) end
if ARGV[1] == 'pause' then return tostring(math.max(0, pool.paused - now)) end
local answer = change[ARGV[1]]()
local written = {}
for _, name in ipairs(names) do
    table.insert(written, name)
    table.insert(written, string.format('%.6f', pool[name]))
end
redis.call('HSET', KEYS[1], unpack(written))
redis.call('EXPIRE', KEYS[1], 3600)
return tostring(answer)
