-- Takes the lock, or joins the queue: taking, fencing and queueing are one atomic step and one round trip.
--
-- KEYS  1 lock   2 fence   3 queue   4 alive
-- ARGV  1 owner   2 ttl in ms   3 '+' or '-' and the waiter's channel, or '' not to join   4 metadata, if any
--
-- The lock's value is 'owner LF token LF acquired (server ms) LF metadata', and the key's expiry is the lock's.
--
-- Returns the token as a string (a number would lose digits above 2^53 in the client) when the lock is the owner's,
-- else { holder, held since, position or 0, ms until the holder's time ends }.

local found = redis.call('MGET', KEYS[1], KEYS[2])
local lock, fence = found[1], found[2]
local marked = fence and string.sub(fence, -1) == '*'

-- The common case first, in as few steps as it can be done: the lock is free, nobody waits, and the clock is past the
-- last token. Both have sixteen digits until the year 2286, so that they compare as text; anything else goes below.
if not lock and not marked then
  local time = redis.call('TIME')
  local token = time[1] .. string.sub('00000', #time[2]) .. time[2]
  if not fence or fence < token then
    local value = ARGV[1] .. '\n' .. token .. '\n' .. string.sub(token, 1, -4) .. '\n' .. (ARGV[4] or '')
    redis.call('SET', KEYS[1], value, 'PX', ARGV[2])
    redis.call('SET', KEYS[2], token, 'PX', '86400000')
    return token
  end
end

-- @include _queue.lua

-- Below this ttl, ms, a holder may be gone before the next head has asked for itself (it does so every third of LIVENESS).
local SHORT = 2000

local owner = ARGV[1] .. '\n'
local member = ARGV[3] ~= '' and ARGV[3] .. ' ' .. ARGV[1]

-- Ours already: it was handed over, or the request was sent again. It never shortens what an earlier one was promised.
if lock and string.sub(lock, 1, #owner) == owner then
  keep_for(KEYS[1], tonumber(ARGV[2]))
  if member and marked then
    redis.call('ZREM', KEYS[3], member)
    redis.call('ZREM', KEYS[4], member)
  end
  return string.match(lock, '\n(%d+)\n')
end

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local millis = math.floor(micros / 1000)

local head
if marked then
  -- Given up while a request was unanswered: this is that request, late. Granting it would lock the name for nobody.
  if redis.call('ZSCORE', KEYS[4], '! ' .. ARGV[1]) then
    return redis.error_reply('GONE this claim has been given up')
  end
  head = live_head(KEYS[3], KEYS[4], millis)
end

-- A live waiter is not overtaken, by `tryAcquire` either.
if not lock and (not head or head == member) then
  local token, keep = mint(fence, micros)
  redis.call('SET', KEYS[1], owner .. token .. '\n' .. millis .. '\n' .. (ARGV[4] or ''), 'PX', ARGV[2])
  local others = false
  if marked then
    if head then
      redis.call('ZREM', KEYS[3], member)
      redis.call('ZREM', KEYS[4], member)
    end
    others = redis.call('EXISTS', KEYS[4]) == 1
  end
  redis.call('SET', KEYS[2], others and token .. '*' or token, 'PX', keep)
  local next_head = others and tonumber(ARGV[2]) < SHORT and redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if next_head then
    wake(next_head, ARGV[2])
  end
  return token
end

local position = 0
if member then
  if not redis.call('ZSCORE', KEYS[3], member) then
    local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[3], (last or 0) + 1, member)
  end
  redis.call('ZADD', KEYS[4], millis + LIVENESS, member)
  keep_for(KEYS[3], LIVENESS)
  keep_for(KEYS[4], LIVENESS)
  mark(KEYS[2], fence, lock)
  position = redis.call('ZRANK', KEYS[3], member) + 1
end

if not lock then
  -- Free, and reserved for the head, who may have missed its message.
  wake(head, 0)
  return { '', '', position, 0 }
end
local holder, since = string.match(lock, '^([^\n]*)\n%d+\n(%d+)\n')
return { holder, since, position, redis.call('PTTL', KEYS[1]) }
