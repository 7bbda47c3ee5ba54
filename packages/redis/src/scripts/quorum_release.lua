-- Gives one server's lock back: of all attempts up to a number, so that the last of them ends the claim.
--
-- KEYS  1 lock   2 gone (only when a request of the claim may still be under way)
-- ARGV  1 owner   2 last attempt that is over   3 ms to keep the name taken without owner, or 0
--       4 channel to tell that the name is free, or ''   5 ms that the tombstone lives
--
-- Returns 1 if this call freed it, else 0.

-- @include _quorum.lua

if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[5])
end
local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local owner, attempt, token, rest = parse(lock)
if owner ~= ARGV[1] or tonumber(attempt) > tonumber(ARGV[2]) then
  return 0
end
if tonumber(ARGV[3]) > 0 then
  redis.call('SET', KEYS[1], '#0\n' .. token .. '\n' .. rest, 'PX', ARGV[3])
else
  redis.call('DEL', KEYS[1])
end
if ARGV[4] ~= '' then
  redis.call('PUBLISH', ARGV[4], ARGV[3])
end
return 1
