-- Keeps the places of one instance's waiters for one name.
--
-- KEYS  1 lock   2 fence   3 queue   4 alive
-- ARGV  queue members
--
-- Returns { head or '', ms until the holder's time ends (0: free), members that have lost their place or were handed the
-- lock... }.

-- @include _queue.lua

local time = redis.call('TIME')
local millis = math.floor(time[1] * 1000 + time[2] / 1000)
local head = live_head(KEYS[3], KEYS[4], millis)

local answer = { head or '', math.max(redis.call('PTTL', KEYS[1]), 0) }
for _, member in ipairs(ARGV) do
  -- Only what is there: a refresh that arrives after the cancel must not queue the waiter again.
  if redis.call('ZSCORE', KEYS[4], member) then
    redis.call('ZADD', KEYS[4], millis + LIVENESS, member)
  else
    answer[#answer + 1] = member
  end
end
if head then
  keep_for(KEYS[3], LIVENESS)
  keep_for(KEYS[4], LIVENESS)
  -- The counter may have lapsed while the lock was held for long.
  local found = redis.call('MGET', KEYS[1], KEYS[2])
  mark(KEYS[2], found[2], found[1])
end
return answer
