-- Shared by the scripts that touch a queue.
--
-- A name's queue is two sorted sets with the same members: `queue` by ticket (the order of arrival) and `alive` by the
-- moment, in server milliseconds, until which a waiter counts as alive. A member is '<instance> <owner>': the instance
-- says on which channel the waiter listens.

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
local function wake(channels, head, left)
  local instance, owner = string.match(head, '^(%S+) (.*)$')
  redis.call('PUBLISH', channels .. instance, left .. ' ' .. owner)
end
