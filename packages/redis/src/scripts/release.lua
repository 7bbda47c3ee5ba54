-- Gives back whatever the claim has, the lock or its place in the queue, and nobody else's; then wakes the next waiter
-- if the lock is free. Release and cancel are one script: a waiter that gives up may have been granted meanwhile.
--
-- KEYS  1 lock   2 queue   3 alive   4 gone (only when a tombstone is wanted)
-- ARGV  1 owner   2 queue member, or ''   3 ms to keep the name taken without owner, or 0   4 channel prefix
--       5 ms that the tombstone lives
--
-- Returns 1 if this call freed the owner's lock, else 0.

-- @include _queue.lua

local owner = ARGV[1] .. '\n'
local keep = tonumber(ARGV[3])

local lock = redis.call('GET', KEYS[1])
local mine = lock and string.sub(lock, 1, #owner) == owner

if mine then
  if keep > 0 then
    redis.call('SET', KEYS[1], string.sub(lock, #owner), 'PX', keep)
  else
    redis.call('DEL', KEYS[1])
  end
end

-- A request of this claim may still be under way: it must find that the claim is over.
if KEYS[4] then
  redis.call('SET', KEYS[4], '1', 'PX', ARGV[5])
end

if redis.call('EXISTS', KEYS[2]) == 1 then
  local time = redis.call('TIME')
  if ARGV[2] ~= '' then
    redis.call('ZREM', KEYS[2], ARGV[2])
    redis.call('ZREM', KEYS[3], ARGV[2])
  end
  local head = live_head(KEYS[2], KEYS[3], math.floor(time[1] * 1000 + time[2] / 1000))
  if head and (mine or not lock) then
    wake(ARGV[4], head, mine and keep or 0)
  end
end

return mine and 1 or 0
