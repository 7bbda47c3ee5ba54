-- Gives a server that said 'absent' the lock again. Sent only after a majority has answered 'extended' in the same
-- round: then nobody else can have a majority, and the server joins the holder's again from the next round.
--
-- KEYS  1 lock   2 fence   3 gone
-- ARGV  1 owner   2 attempt   3 token   4 ttl in ms   5 metadata
--
-- Returns 1 when the lock is there now.

-- @include _quorum.lua

local found = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
if found[1] or found[3] then
  return 0
end
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
raise(KEYS[2], found[2], tonumber(ARGV[3]), micros)
local millis = string.format('%.0f', math.floor(micros / 1000))
local value = ARGV[1] .. '#' .. ARGV[2] .. '\n' .. ARGV[3] .. '\n' .. millis .. '\n' .. ARGV[5]
redis.call('SET', KEYS[1], value, 'PX', ARGV[4])
return 1
