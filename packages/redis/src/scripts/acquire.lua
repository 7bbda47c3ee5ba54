-- Takes the lock, or joins the queue: taking, fencing and queueing are one atomic step and one round trip.
--
-- KEYS  1 lock   2 fence   3 gone (this owner's tombstone)   4 queue   5 alive
-- ARGV  1 owner   2 ttl in ms   3 metadata   4 queue member, or '' not to join   5 channel prefix
--
-- The lock's value is 'owner LF token LF acquired (server ms) LF metadata', and the key's expiry is the lock's.
--
-- Returns the token as a string (a number would lose digits above 2^53 in the client) when the lock is the owner's,
-- else { holder, held since, position or 0, ms until the holder's time ends }.

-- @include _queue.lua

-- How long a waiter counts as alive after its last sign of life, ms.
local LIVENESS = 5000
-- Below this ttl, ms, a holder may be gone before the next head has asked for itself (it does so every third of LIVENESS).
local SHORT = 2000
-- How long the counter outlives the last grant, ms. Losing it costs nothing: the server's clock, in the token, is past it.
local FENCE = 86400000

local owner = ARGV[1] .. '\n'
local ttl = tonumber(ARGV[2])
local member = ARGV[4]

local found = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local lock, fence = found[1], found[2]

-- Given up while a request was unanswered: this is that request, late. Granting it would lock the name for nobody.
if found[3] then
  return redis.error_reply('GONE this claim has been given up')
end

-- Ours already: the request was sent again. It never shortens what an earlier one was promised.
if lock and string.sub(lock, 1, #owner) == owner then
  if redis.call('PTTL', KEYS[1]) <= ttl then
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
  if member ~= '' and redis.call('ZREM', KEYS[4], member) == 1 then
    redis.call('ZREM', KEYS[5], member)
  end
  return string.match(lock, '\n(%d+)\n')
end

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local millis = math.floor(micros / 1000)

local head
if redis.call('EXISTS', KEYS[4]) == 1 then
  head = live_head(KEYS[4], KEYS[5], millis)
end

-- A live waiter is not overtaken, by `tryAcquire` either.
if not lock and (not head or head == member) then
  local token, keep = micros, FENCE
  if fence and fence + 1 > micros then
    -- The clock is behind the counter: the counter must then live until the clock has caught up.
    token = fence + 1
    keep = FENCE + math.ceil((token - micros) / 1000)
  end
  token = string.format('%.0f', token)
  redis.call('SET', KEYS[2], token, 'PX', keep)
  redis.call('SET', KEYS[1], owner .. token .. '\n' .. millis .. '\n' .. ARGV[3], 'PX', ttl)
  if head then
    redis.call('ZREM', KEYS[4], member)
    redis.call('ZREM', KEYS[5], member)
    local next_head = ttl < SHORT and redis.call('ZRANGE', KEYS[4], 0, 0)[1]
    if next_head then
      wake(ARGV[5], next_head, ttl)
    end
  end
  return token
end

local position = 0
if member ~= '' then
  if not redis.call('ZSCORE', KEYS[4], member) then
    local last = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[4], (last or 0) + 1, member)
  end
  redis.call('ZADD', KEYS[5], millis + LIVENESS, member)
  -- The queue goes with its last live waiter, also where nobody asks for this name again.
  redis.call('PEXPIRE', KEYS[4], LIVENESS)
  redis.call('PEXPIRE', KEYS[5], LIVENESS)
  position = redis.call('ZRANK', KEYS[4], member) + 1
end

if not lock then
  -- Free, and reserved for the head, who may have missed its message.
  wake(ARGV[5], head, 0)
  return { '', '', position, 0 }
end
local holder, since = string.match(lock, '^([^\n]*)\n%d+\n(%d+)\n')
return { holder, since, position, redis.call('PTTL', KEYS[1]) }
