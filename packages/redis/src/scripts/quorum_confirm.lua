-- The second step of fencing: this server learns the token of the whole, so that a later majority, which shares a
-- server with this one, mints a higher token.
--
-- KEYS  1 lock   2 fence
-- ARGV  1 owner   2 attempt   3 token
--
-- Returns the counter as a string (higher than the token when this server has seen a higher one: then the token must
-- be raised), or false when the lock is no longer the attempt's.

-- @include _quorum.lua

local found = redis.call('MGET', KEYS[1], KEYS[2])
if not found[1] then
  return false
end
local owner, attempt, _, rest = parse(found[1])
if owner ~= ARGV[1] or attempt ~= ARGV[2] then
  return false
end
local time = redis.call('TIME')
local fence = raise(KEYS[2], found[2], tonumber(ARGV[3]), time[1] * 1000000 + time[2])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then
  redis.call('SET', KEYS[1], owner .. '#' .. attempt .. '\n' .. ARGV[3] .. '\n' .. rest, 'PX', left)
end
return string.format('%.0f', fence)
