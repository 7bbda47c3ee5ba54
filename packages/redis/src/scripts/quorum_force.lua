-- Frees the name on one server, whoever holds it.
--
-- KEYS  1 lock   2 forced
-- ARGV  1 only this token, or ''   2 channel to tell that the name is free
--
-- Returns 1 if something was freed.

-- @include _quorum.lua

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local _, _, token = parse(lock)
if ARGV[1] ~= '' and ARGV[1] ~= token then
  return 0
end
redis.call('SET', KEYS[2], token, 'PX', math.max(redis.call('PTTL', KEYS[1]), 10000))
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], '0')
return 1
