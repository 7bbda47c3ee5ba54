-- Shared by the scripts that touch a queue.
--
-- A name's queue is two sorted sets: `queue` holds the waiters by ticket (the order of arrival), `alive` the moment, in
-- server milliseconds, until which each counts as alive. A member is '<+ or -><channel> <owner>': the waiter listens
-- there, and with '+' it may be handed the lock. `alive` also holds tombstones, '! <owner>': claims that were given up with a
-- request unanswered.
--
-- The counter's value, the last token, ends with '*' while `alive` may hold anything: without the mark, a script need
-- not look at the queue at all.

-- How long a waiter counts as alive after its last sign of life, ms.
local LIVENESS = 5000
-- How long the counter outlives the last grant, ms. Losing it costs nothing: the server's clock, in the token, is past it.
local FENCE = 86400000

-- Removes every waiter whose liveness has run out, however many died together, and returns the head of the rest.
-- Every script does this first: a script that trusted a dead head would hold the lock for it.
local function live_head(queue, alive, millis)
  local dead = redis.call('ZRANGEBYSCORE', alive, '-inf', millis)
  for _, member in ipairs(dead) do
    redis.call('ZREM', queue, member)
    redis.call('ZREM', alive, member)
  end
  return redis.call('ZRANGE', queue, 0, 0)[1]
end

-- Tells the head when its next attempt is worth it: in `left` milliseconds, 0 is now. The head keeps its place until
-- its own attempt takes the lock: popped on wake-up, a live waiter that is slow to answer would lose its turn.
local function wake(head, left)
  local channel, owner = string.match(head, '^.(.*) (%S+)$')
  redis.call('PUBLISH', channel, 'wake ' .. left .. ' ' .. owner)
end

-- The next token, and how long the counter must live: until its day is over, or, where the clock is behind it, until a
-- day after the clock has caught up.
local function mint(fence, micros)
  local last = fence and tonumber((string.gsub(fence, '*', '')))
  local token = last and last >= micros and last + 1 or micros
  return string.format('%.0f', token), FENCE + math.ceil((token - micros) / 1000)
end

-- Keys of the queue go with their last live entry, also where nobody asks for this name again.
local function keep_for(key, ms)
  if redis.call('PTTL', key) < ms then
    redis.call('PEXPIRE', key, ms)
  end
end

-- Marks the counter. A lock may be held for longer than the counter lives: its token is then in the lock's value.
local function mark(key, fence, lock)
  if not fence or string.sub(fence, -1) ~= '*' then
    local token = fence or (lock and string.match(lock, '\n(%d+)\n')) or '0'
    redis.call('SET', key, token .. '*', 'KEEPTTL')
  end
  keep_for(key, FENCE)
end
