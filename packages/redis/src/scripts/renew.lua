-- Renews one grant. One key alone, so that it goes through while a cluster moves the slot.
--
-- KEYS  1 lock
-- ARGV  1 'owner LF token LF'   2 ttl in ms
--
-- Returns 1, or 0 when the grant is no longer the present one. It never creates the key and never shortens its life:
-- a late renewal must not cut what a later one was promised.

local lock = redis.call('GET', KEYS[1])
if not lock or string.sub(lock, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
