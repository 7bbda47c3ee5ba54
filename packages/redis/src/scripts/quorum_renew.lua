-- Renews a grant on one server.
--
-- KEYS  1 lock   2 fence
-- ARGV  1 owner   2 attempt   3 token   4 ttl in ms
--
-- Returns 'extended', 'absent' (the server has lost it, or never had it) or 'other'. It never creates the key and never
-- shortens its life. An earlier attempt of the same claim is another: its release may still be under way.

-- @include _quorum.lua

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 'absent'
end
local owner, attempt, token, rest = parse(lock)
if owner ~= ARGV[1] or attempt ~= ARGV[2] then
  return 'other'
end
local ttl = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))
if token == ARGV[3] then
  redis.call('PEXPIRE', KEYS[1], ttl)
  return 'extended'
end
-- Its vote came in after the token was settled: it learns the token now.
local time = redis.call('TIME')
raise(KEYS[2], redis.call('GET', KEYS[2]), tonumber(ARGV[3]), time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], owner .. '#' .. attempt .. '\n' .. ARGV[3] .. '\n' .. rest, 'PX', ttl)
return 'extended'
