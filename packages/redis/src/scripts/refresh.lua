-- Keeps the places of one instance's waiters for one name.
--
-- KEYS  1 lock   2 queue   3 alive
-- ARGV  queue members
--
-- Returns { head or '', ms until the holder's time ends (0: free), members that have lost their place... }.

-- @include _queue.lua

-- As in acquire.lua.
local LIVENESS = 5000

local time = redis.call('TIME')
local millis = math.floor(time[1] * 1000 + time[2] / 1000)
local head = live_head(KEYS[2], KEYS[3], millis)

local answer = { head or '', math.max(redis.call('PTTL', KEYS[1]), 0) }
for _, member in ipairs(ARGV) do
  -- Only what is there: a refresh that arrives after the cancel must not queue the waiter again.
  if redis.call('ZSCORE', KEYS[3], member) then
    redis.call('ZADD', KEYS[3], millis + LIVENESS, member)
  else
    answer[#answer + 1] = member
  end
end
redis.call('PEXPIRE', KEYS[2], LIVENESS)
redis.call('PEXPIRE', KEYS[3], LIVENESS)
return answer
