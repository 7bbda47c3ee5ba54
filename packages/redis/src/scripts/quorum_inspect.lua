-- What one server has for a name. Reads only.
--
-- KEYS  1 lock
--
-- Returns false, or { owner, token, held since, ms left, metadata }.

-- @include _quorum.lua

local lock = redis.call('GET', KEYS[1])
if not lock then
  return false
end
local owner, _, token, rest = parse(lock)
local since, metadata = string.match(rest, '^(%d+)\n(.*)$')
return { owner, token, since, redis.call('PTTL', KEYS[1]), metadata }
