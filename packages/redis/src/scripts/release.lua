-- Gives back whatever the claim has, the lock or its place in the queue, and nobody else's; then hands the lock to the
-- next waiter, or wakes it. Release and cancel are one script: a waiter that gives up may have been granted meanwhile.
--
-- Handed over, the lock is the waiter's for LIVENESS from now, until its own attempt takes it for the whole ttl: a live
-- waiter that is slow to hear of it keeps it, and a dead one delays the others once.
--
-- KEYS  1 lock   2 fence   3 queue   4 alive
-- ARGV  1 owner   2 '+' or '-' and the waiter's channel, or ''
--       3 ms to keep the name taken without owner, or none
--       4 ms for which a request of this claim may still be under way, or none
--
-- Returns 1 if this call freed the owner's lock, else 0.

local owner = ARGV[1] .. '\n'
local keep = tonumber(ARGV[3] or 0)
local gone = tonumber(ARGV[4] or 0)

local found = redis.call('MGET', KEYS[1], KEYS[2])
local lock, fence = found[1], found[2]
local mine = lock and string.sub(lock, 1, #owner) == owner

if mine and keep > 0 then
  redis.call('SET', KEYS[1], string.sub(lock, #owner), 'PX', keep)
elseif mine then
  redis.call('DEL', KEYS[1])
end

-- Nobody waits, and nothing of this claim is under way: the common case ends here.
if gone == 0 and not (fence and string.sub(fence, -1) == '*') then
  return mine and 1 or 0
end

-- @include _queue.lua

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local millis = math.floor(micros / 1000)

-- A holder has no place any more.
if ARGV[2] ~= '' and not mine then
  local member = ARGV[2] .. ' ' .. ARGV[1]
  redis.call('ZREM', KEYS[3], member)
  redis.call('ZREM', KEYS[4], member)
end
if gone > 0 then
  -- A request that comes later must find that the claim is over.
  redis.call('ZADD', KEYS[4], millis + gone, '! ' .. ARGV[1])
  keep_for(KEYS[4], gone)
  mark(KEYS[2], fence, lock)
end

local head = live_head(KEYS[3], KEYS[4], millis)
if not head or not (mine or not lock) then
  return mine and 1 or 0
end
if keep > 0 or string.sub(head, 1, 1) == '-' then
  wake(head, mine and keep or 0)
  return mine and 1 or 0
end

local heir = string.match(head, '%S+$')
local token, life = mint(fence, micros)
redis.call('SET', KEYS[1], heir .. '\n' .. token .. '\n' .. millis .. '\n', 'PX', LIVENESS)
redis.call('ZREM', KEYS[3], head)
redis.call('ZREM', KEYS[4], head)
local others = redis.call('EXISTS', KEYS[4]) == 1
redis.call('SET', KEYS[2], others and token .. '*' or token, 'PX', life)
wake(head, 0)
return mine and 1 or 0
