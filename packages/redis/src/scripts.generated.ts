// Made from scripts/*.lua by scripts/embed-lua.mjs. Change those, then run: pnpm --filter @holdfast/redis build
import type { Script } from './script.js';

export const acquire: Script = {
  sha: '5631fc11782aa4693ec937c18daec70127929137',
  source: `-- Takes the lock, or joins the queue: taking, fencing and queueing are one atomic step and one round trip.
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
    local value = ARGV[1] .. '\\n' .. token .. '\\n' .. string.sub(token, 1, -4) .. '\\n' .. (ARGV[4] or '')
    redis.call('SET', KEYS[1], value, 'PX', ARGV[2])
    redis.call('SET', KEYS[2], token, 'PX', '86400000')
    return token
  end
end

-- Shared by the scripts that touch a queue.
--
-- A name's queue is two sorted sets: \`queue\` holds the waiters by ticket (the order of arrival), \`alive\` the moment, in
-- server milliseconds, until which each counts as alive. A member is '<+ or -><channel> <owner>': the waiter listens
-- there, and with '+' it may be handed the lock. \`alive\` also holds tombstones, '! <owner>': claims that were given up with a
-- request unanswered.
--
-- The counter's value, the last token, ends with '*' while \`alive\` may hold anything: without the mark, a script need
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

-- Tells the head when its next attempt is worth it: in \`left\` milliseconds, 0 is now. The head keeps its place until
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
    local token = fence or (lock and string.match(lock, '\\n(%d+)\\n')) or '0'
    redis.call('SET', key, token .. '*', 'KEEPTTL')
  end
  keep_for(key, FENCE)
end

-- Below this ttl, ms, a holder may be gone before the next head has asked for itself (it does so every third of LIVENESS).
local SHORT = 2000

local owner = ARGV[1] .. '\\n'
local member = ARGV[3] ~= '' and ARGV[3] .. ' ' .. ARGV[1]

-- Ours already: it was handed over, or the request was sent again. It never shortens what an earlier one was promised.
if lock and string.sub(lock, 1, #owner) == owner then
  keep_for(KEYS[1], tonumber(ARGV[2]))
  if member and marked then
    redis.call('ZREM', KEYS[3], member)
    redis.call('ZREM', KEYS[4], member)
  end
  return string.match(lock, '\\n(%d+)\\n')
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

-- A live waiter is not overtaken, by \`tryAcquire\` either.
if not lock and (not head or head == member) then
  local token, keep = mint(fence, micros)
  redis.call('SET', KEYS[1], owner .. token .. '\\n' .. millis .. '\\n' .. (ARGV[4] or ''), 'PX', ARGV[2])
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
local holder, since = string.match(lock, '^([^\\n]*)\\n%d+\\n(%d+)\\n')
return { holder, since, position, redis.call('PTTL', KEYS[1]) }
`,
};

export const adopt: Script = {
  sha: 'a4d321c5da54f30c78cfeccc8bc2c509f9531c2f',
  source: `-- Replaces the owner of a grant in one step and keeps its token.
--
-- KEYS  1 lock
-- ARGV  1 'old owner LF token LF'   2 'new owner LF token LF'   3 ttl in ms
--
-- Returns 1, or 0 when the grant is not the present one: of two adopters one gets it. Sent again by the one who got
-- it, it says 1 again.

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local rest
if string.sub(lock, 1, #ARGV[1]) == ARGV[1] then
  rest = string.sub(lock, #ARGV[1] + 1)
elseif string.sub(lock, 1, #ARGV[2]) == ARGV[2] then
  rest = string.sub(lock, #ARGV[2] + 1)
else
  return 0
end
local left = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2] .. rest, 'PX', math.max(left, tonumber(ARGV[3])))
return 1
`,
};

export const fencedSet: Script = {
  sha: 'c8b990ef907ce384da5d2827068d865db9983f1f',
  source: `-- Writes only where no newer token has written.
--
-- KEYS  1 the value's key   2 the key that remembers the newest token
-- ARGV  1 value   2 token
--
-- Returns false when written, else the newer token. Tokens are compared as decimal strings: those of other backends
-- may exceed 2^53, which a Lua number cannot hold exactly.

local newest = redis.call('GET', KEYS[2])
local token = ARGV[2]
if newest and (#newest > #token or (#newest == #token and newest > token)) then
  return newest
end
redis.call('SET', KEYS[2], token)
redis.call('SET', KEYS[1], ARGV[1])
return false
`,
};

export const force: Script = {
  sha: 'eba5e92d3f1087f3f331463bfff928947c084970',
  source: `-- Frees the name whoever holds it, tail included. The queue stays, and its head is woken.
--
-- KEYS  1 lock   2 forced   3 queue   4 alive
-- ARGV  1 only this token, or ''
--
-- Returns 1 if something was freed. The mark in \`forced\` tells the holder, at its next renewal, that it was forced, and
-- whoever asks again after a lost answer.

-- Shared by the scripts that touch a queue.
--
-- A name's queue is two sorted sets: \`queue\` holds the waiters by ticket (the order of arrival), \`alive\` the moment, in
-- server milliseconds, until which each counts as alive. A member is '<+ or -><channel> <owner>': the waiter listens
-- there, and with '+' it may be handed the lock. \`alive\` also holds tombstones, '! <owner>': claims that were given up with a
-- request unanswered.
--
-- The counter's value, the last token, ends with '*' while \`alive\` may hold anything: without the mark, a script need
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

-- Tells the head when its next attempt is worth it: in \`left\` milliseconds, 0 is now. The head keeps its place until
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
    local token = fence or (lock and string.match(lock, '\\n(%d+)\\n')) or '0'
    redis.call('SET', key, token .. '*', 'KEEPTTL')
  end
  keep_for(key, FENCE)
end

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local token = string.match(lock, '\\n(%d+)\\n')
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
`,
};

export const inspect: Script = {
  sha: '32daac2c48e10e9232293a7b4440f60c7c96026a',
  source: `-- The state of one name. Reads only.
--
-- KEYS  1 lock   2 queue   3 alive
--
-- Returns { lock's value or false, ms left, live members in order... }.

local time = redis.call('TIME')
local millis = math.floor(time[1] * 1000 + time[2] / 1000)

local alive = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. millis, '+inf')) do
  alive[member] = true
end

local answer = { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]) }
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if alive[member] then
    answer[#answer + 1] = member
  end
end
return answer
`,
};

export const peek: Script = {
  sha: '849030699cbb7f662d483b3a55b5f24183183984',
  source: `-- Reads one key.
--
-- KEYS  1 any string
return redis.call('GET', KEYS[1])
`,
};

export const quorumAcquire: Script = {
  sha: '91b83be10f63bc5efdd22e17fbf40fb21835dc77',
  source: `-- One server's vote for one attempt.
--
-- KEYS  1 lock   2 fence   3 gone (the claim's tombstone: the last attempt that is over)
--       4 born: since when this server has remembered every vote, by its own clock; only where there is a grace
-- ARGV  1 owner   2 attempt   3 ttl in ms   4 metadata   5 grace in ms: how long a server without memory keeps out
--
-- Returns the token as a string when this server's lock is the attempt's, { holder, held since, ms left } when another
-- has it, or the ms for which this server keeps out: it has been emptied, and may have forgotten a vote.

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

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
local value = ARGV[1] .. '#' .. ARGV[2] .. '\\n' .. text .. '\\n' .. millis .. '\\n' .. ARGV[4]
redis.call('SET', KEYS[1], value, 'PX', ARGV[3])
return text
`,
};

export const quorumAdopt: Script = {
  sha: 'e147b96e97b303bee6dc7f52edc367f14744308b',
  source: `-- Replaces the owner of a grant on one server, and keeps its token.
--
-- KEYS  1 lock   2 fence
-- ARGV  1 old owner   2 new owner   3 token   4 ttl in ms
--
-- Returns 'mine' (also when asked again), 'taken' (somebody else has adopted it) or 'none' (this server has no such
-- grant, and decides nothing).

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 'none'
end
local owner, _, token, rest = parse(lock)
if owner ~= ARGV[1] and owner ~= ARGV[2] then
  return token == ARGV[3] and owner ~= '' and 'taken' or 'none'
end
local time = redis.call('TIME')
raise(KEYS[2], redis.call('GET', KEYS[2]), tonumber(ARGV[3]), time[1] * 1000000 + time[2])
local left = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))
redis.call('SET', KEYS[1], ARGV[2] .. '#0\\n' .. ARGV[3] .. '\\n' .. rest, 'PX', left)
return 'mine'
`,
};

export const quorumConfirm: Script = {
  sha: '81f76a03ed45d77ff0f589582f4af55849943abe',
  source: `-- The second step of fencing: this server learns the token of the whole, so that a later majority, which shares a
-- server with this one, mints a higher token.
--
-- KEYS  1 lock   2 fence
-- ARGV  1 owner   2 attempt   3 token
--
-- Returns the counter as a string (higher than the token when this server has seen a higher one: then the token must
-- be raised), or false when the lock is no longer the attempt's.

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

local found = redis.call('MGET', KEYS[1], KEYS[2])
if not found[1] then
  return false
end
local owner, attempt, _, rest = parse(found[1])
if owner ~= ARGV[1] or attempt ~= ARGV[2] then
  return false
end
local time = redis.call('TIME')
local fence = raise(KEYS[2], found[2], tonumber(ARGV[3]), time[1] * 1000000 + time[2])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then
  redis.call('SET', KEYS[1], owner .. '#' .. attempt .. '\\n' .. ARGV[3] .. '\\n' .. rest, 'PX', left)
end
return string.format('%.0f', fence)
`,
};

export const quorumForce: Script = {
  sha: '7b3fa041503d007044b83420cdc03765e0973174',
  source: `-- Frees the name on one server, whoever holds it.
--
-- KEYS  1 lock   2 forced
-- ARGV  1 only this token, or ''   2 channel to tell that the name is free
--
-- Returns 1 if something was freed.

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local _, _, token = parse(lock)
if ARGV[1] ~= '' and ARGV[1] ~= token then
  return 0
end
redis.call('SET', KEYS[2], token, 'PX', math.max(redis.call('PTTL', KEYS[1]), 10000))
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], '0')
return 1
`,
};

export const quorumInspect: Script = {
  sha: '8a73eb0a025c6dcdb9fb747068e24f8b1f1a26ec',
  source: `-- What one server has for a name. Reads only.
--
-- KEYS  1 lock
--
-- Returns false, or { owner, token, held since, ms left, metadata }.

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

local lock = redis.call('GET', KEYS[1])
if not lock then
  return false
end
local owner, _, token, rest = parse(lock)
local since, metadata = string.match(rest, '^(%d+)\\n(.*)$')
return { owner, token, since, redis.call('PTTL', KEYS[1]), metadata }
`,
};

export const quorumRelease: Script = {
  sha: '887e28d2f3587b3495b098fdf13dc6fcb1dddc94',
  source: `-- Gives one server's lock back: of all attempts up to a number, so that the last of them ends the claim.
--
-- KEYS  1 lock   2 gone (only when a request of the claim may still be under way)
-- ARGV  1 owner   2 last attempt that is over   3 ms to keep the name taken without owner, or 0
--       4 channel to tell that the name is free, or ''   5 ms that the tombstone lives
--
-- Returns 1 if this call freed it, else 0.

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

if KEYS[2] then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[5])
end
local lock = redis.call('GET', KEYS[1])
if not lock then
  return 0
end
local owner, attempt, token, rest = parse(lock)
if owner ~= ARGV[1] or tonumber(attempt) > tonumber(ARGV[2]) then
  return 0
end
if tonumber(ARGV[3]) > 0 then
  redis.call('SET', KEYS[1], '#0\\n' .. token .. '\\n' .. rest, 'PX', ARGV[3])
else
  redis.call('DEL', KEYS[1])
end
if ARGV[4] ~= '' then
  redis.call('PUBLISH', ARGV[4], ARGV[3])
end
return 1
`,
};

export const quorumRenew: Script = {
  sha: '1711c732038afb3f8edffebb6c3c56f8f9c77ec1',
  source: `-- Renews a grant on one server.
--
-- KEYS  1 lock   2 fence
-- ARGV  1 owner   2 attempt   3 token   4 ttl in ms
--
-- Returns 'extended', 'absent' (the server has lost it, or never had it) or 'other'. It never creates the key and never
-- shortens its life. An earlier attempt of the same claim is another: its release may still be under way.

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

local lock = redis.call('GET', KEYS[1])
if not lock then
  return 'absent'
end
local owner, attempt, token, rest = parse(lock)
if owner ~= ARGV[1] or attempt ~= ARGV[2] then
  return 'other'
end
local ttl = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))
if token == ARGV[3] then
  redis.call('PEXPIRE', KEYS[1], ttl)
  return 'extended'
end
-- Its vote came in after the token was settled: it learns the token now.
local time = redis.call('TIME')
raise(KEYS[2], redis.call('GET', KEYS[2]), tonumber(ARGV[3]), time[1] * 1000000 + time[2])
redis.call('SET', KEYS[1], owner .. '#' .. attempt .. '\\n' .. ARGV[3] .. '\\n' .. rest, 'PX', ttl)
return 'extended'
`,
};

export const quorumRepair: Script = {
  sha: '102665be32fb7a62b10582b9e024abee2579436f',
  source: `-- Gives a server that said 'absent' the lock again. Sent only after a majority has answered 'extended' in the same
-- round: then nobody else can have a majority, and the server joins the holder's again from the next round.
--
-- KEYS  1 lock   2 fence   3 gone
-- ARGV  1 owner   2 attempt   3 token   4 ttl in ms   5 metadata
--
-- Returns 1 when the lock is there now.

-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\\n]*)#(%d+)\\n(%d+)\\n(.*)$')
end

-- Raises the counter, never lowers it. It outlives the last grant by a day: losing it costs nothing, since the server's
-- clock, in the next token, is past it; where the clock is behind, it lives until the clock has caught up.
local function raise(key, fence, token, micros)
  if not fence or tonumber(fence) < token then
    local keep = 86400000 + math.max(0, math.ceil((token - micros) / 1000))
    redis.call('SET', key, string.format('%.0f', token), 'PX', keep)
    return token
  end
  return tonumber(fence)
end

local found = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
if found[1] or found[3] then
  return 0
end
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
raise(KEYS[2], found[2], tonumber(ARGV[3]), micros)
local millis = string.format('%.0f', math.floor(micros / 1000))
local value = ARGV[1] .. '#' .. ARGV[2] .. '\\n' .. ARGV[3] .. '\\n' .. millis .. '\\n' .. ARGV[5]
redis.call('SET', KEYS[1], value, 'PX', ARGV[4])
return 1
`,
};

export const refresh: Script = {
  sha: '9d4848723b7bbd0172e87a4f7df3b8b1d5fbc70d',
  source: `-- Keeps the places of one instance's waiters for one name.
--
-- KEYS  1 lock   2 fence   3 queue   4 alive
-- ARGV  queue members
--
-- Returns { head or '', ms until the holder's time ends (0: free), members that have lost their place or were handed the
-- lock... }.

-- Shared by the scripts that touch a queue.
--
-- A name's queue is two sorted sets: \`queue\` holds the waiters by ticket (the order of arrival), \`alive\` the moment, in
-- server milliseconds, until which each counts as alive. A member is '<+ or -><channel> <owner>': the waiter listens
-- there, and with '+' it may be handed the lock. \`alive\` also holds tombstones, '! <owner>': claims that were given up with a
-- request unanswered.
--
-- The counter's value, the last token, ends with '*' while \`alive\` may hold anything: without the mark, a script need
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

-- Tells the head when its next attempt is worth it: in \`left\` milliseconds, 0 is now. The head keeps its place until
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
    local token = fence or (lock and string.match(lock, '\\n(%d+)\\n')) or '0'
    redis.call('SET', key, token .. '*', 'KEEPTTL')
  end
  keep_for(key, FENCE)
end

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
`,
};

export const release: Script = {
  sha: '93a766c92642d76f24fd5d4c03e3f69a6237badf',
  source: `-- Gives back whatever the claim has, the lock or its place in the queue, and nobody else's; then hands the lock to the
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

local owner = ARGV[1] .. '\\n'
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

-- Shared by the scripts that touch a queue.
--
-- A name's queue is two sorted sets: \`queue\` holds the waiters by ticket (the order of arrival), \`alive\` the moment, in
-- server milliseconds, until which each counts as alive. A member is '<+ or -><channel> <owner>': the waiter listens
-- there, and with '+' it may be handed the lock. \`alive\` also holds tombstones, '! <owner>': claims that were given up with a
-- request unanswered.
--
-- The counter's value, the last token, ends with '*' while \`alive\` may hold anything: without the mark, a script need
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

-- Tells the head when its next attempt is worth it: in \`left\` milliseconds, 0 is now. The head keeps its place until
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
    local token = fence or (lock and string.match(lock, '\\n(%d+)\\n')) or '0'
    redis.call('SET', key, token .. '*', 'KEEPTTL')
  end
  keep_for(key, FENCE)
end

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
redis.call('SET', KEYS[1], heir .. '\\n' .. token .. '\\n' .. millis .. '\\n', 'PX', LIVENESS)
redis.call('ZREM', KEYS[3], head)
redis.call('ZREM', KEYS[4], head)
local others = redis.call('EXISTS', KEYS[4]) == 1
redis.call('SET', KEYS[2], others and token .. '*' or token, 'PX', life)
wake(head, 0)
return mine and 1 or 0
`,
};

export const renew: Script = {
  sha: '0efab5eabee514269dd98f2833ad5ac62b75095d',
  source: `-- Renews one grant. One key alone, so that it goes through while a cluster moves the slot.
--
-- KEYS  1 lock
-- ARGV  1 'owner LF token LF'   2 ttl in ms
--
-- Returns 1, or 0 when the grant is no longer the present one. It never creates the key and never shortens its life:
-- a late renewal must not cut what a later one was promised.

local lock = redis.call('GET', KEYS[1])
if not lock or string.sub(lock, 1, #ARGV[1]) ~= ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
`,
};
