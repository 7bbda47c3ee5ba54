-- One server's vote for one attempt.
--
-- KEYS  1 lock   2 fence   3 gone (the claim's tombstone: the last attempt that is over)
--       4 born: since when this server has remembered every vote, by its own clock; only where there is a grace
-- ARGV  1 owner   2 attempt   3 ttl in ms   4 metadata   5 grace in ms: how long a server without memory keeps out
--
-- Returns the token as a string when this server's lock is the attempt's, { holder, held since, ms left } when another
-- has it, or the ms for which this server keeps out: it has been emptied, and may have forgotten a vote.

-- @include _quorum.lua

local found = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local lock, fence, gone = found[1], found[2], found[3]

if gone and tonumber(gone) >= tonumber(ARGV[2]) then
  return redis.error_reply('GONE this attempt is over')
end

if lock then
  local owner, attempt, token, rest = parse(lock)
  -- The same request again. Its time is left alone: validity counts from the attempt's first request.
  if owner == ARGV[1] and attempt == ARGV[2] then
    return token
  end
  return { owner, string.match(rest, '^%d+'), redis.call('PTTL', KEYS[1]) }
end

local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
if KEYS[4] then
  local born = redis.call('GET', KEYS[4])
  local now = math.floor(micros / 1000)
  if not born then
    born = now
    redis.call('SET', KEYS[4], string.format('%.0f', now))
  end
  local wait = born + ARGV[5] - now
  if wait > 0 then
    return wait
  end
end
local token = raise(KEYS[2], fence, math.max(micros, fence and tonumber(fence) + 1 or 0), micros)
local text = string.format('%.0f', token)
local millis = string.format('%.0f', math.floor(micros / 1000))
local value = ARGV[1] .. '#' .. ARGV[2] .. '\n' .. text .. '\n' .. millis .. '\n' .. ARGV[4]
redis.call('SET', KEYS[1], value, 'PX', ARGV[3])
return text
