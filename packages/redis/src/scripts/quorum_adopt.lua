-- Replaces the owner of a grant on one server, and keeps its token.
--
-- KEYS  1 lock   2 fence
-- ARGV  1 old owner   2 new owner   3 token   4 ttl in ms
--
-- Returns 'mine' (also when asked again), 'taken' (somebody else has adopted it) or 'none' (this server has no such
-- grant, and decides nothing).

-- @include _quorum.lua

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 'none'
end
local owner, _, token, rest = parse(lock)
if owner ~= ARGV[1] and owner ~= ARGV[2] then
  return token == ARGV[3] and owner ~= '' and 'taken' or 'none'
end
local time = redis.call('TIME')
raise(KEYS[2], redis.call('GET', KEYS[2]), tonumber(ARGV[3]), time[1] * 1000000 + time[2])
local left = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))
redis.call('SET', KEYS[1], ARGV[2] .. '#0\n' .. ARGV[3] .. '\n' .. rest, 'PX', left)
return 'mine'
