-- Writes only where no newer token has written.
--
-- KEYS  1 the value's key   2 the key that remembers the newest token
-- ARGV  1 value   2 token
--
-- Returns false when written, else the newer token. Tokens are compared as decimal strings: those of other backends
-- may exceed 2^53, which a Lua number cannot hold exactly.

local newest = redis.call('GET', KEYS[2])
local token = ARGV[2]
if newest and (#newest > #token or (#newest == #token and newest > token)) then
  return newest
end
redis.call('SET', KEYS[2], token)
redis.call('SET', KEYS[1], ARGV[1])
return false
