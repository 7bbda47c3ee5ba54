-- Frees the name whoever holds it, tail included. The queue stays, and its head is woken.
--
-- KEYS  1 lock   2 forced   3 queue   4 alive
-- ARGV  1 only this token, or ''
--
-- Returns 1 if something was freed. The mark in `forced` tells the holder, at its next renewal, that it was forced, and
-- whoever asks again after a lost answer.

-- @include _queue.lua

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local token = string.match(lock, '\n(%d+)\n')
if ARGV[1] ~= '' and ARGV[1] ~= token then
  return 0
end

redis.call('SET', KEYS[2], token, 'PX', math.max(redis.call('PTTL', KEYS[1]), 10000))
redis.call('DEL', KEYS[1])

local time = redis.call('TIME')
local head = live_head(KEYS[3], KEYS[4], math.floor(time[1] * 1000 + time[2] / 1000))
if head then
  wake(head, 0)
end
return 1
