-- Replaces the owner of a grant in one step and keeps its token.
--
-- KEYS  1 lock
-- ARGV  1 'old owner LF token LF'   2 'new owner LF token LF'   3 ttl in ms
--
-- Returns 1, or 0 when the grant is not the present one: of two adopters one gets it. Sent again by the one who got
-- it, it says 1 again.

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local rest
if string.sub(lock, 1, #ARGV[1]) == ARGV[1] then
  rest = string.sub(lock, #ARGV[1] + 1)
elseif string.sub(lock, 1, #ARGV[2]) == ARGV[2] then
  rest = string.sub(lock, #ARGV[2] + 1)
else
  return 0
end
local left = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2] .. rest, 'PX', math.max(left, tonumber(ARGV[3])))
return 1
