-- The state of one name. Reads only.
--
-- KEYS  1 lock   2 queue   3 alive
--
-- Returns { lock's value or false, ms left, live members in order... }.

local time = redis.call('TIME')
local millis = math.floor(time[1] * 1000 + time[2] / 1000)

local alive = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. millis, '+inf')) do
  alive[member] = true
end

local answer = { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]) }
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if alive[member] then
    answer[#answer + 1] = member
  end
end
return answer
