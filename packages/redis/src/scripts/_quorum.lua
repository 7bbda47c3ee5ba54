-- Shared by the scripts of a quorum. A lock's value is 'owner#attempt LF token LF acquired (server ms) LF metadata'.
-- Each attempt of a claim has a number of its own, so that a late request of one cannot act on the grant of another.

-- Whose the value is: owner, attempt, token, and what follows.
local function parse(value)
  return string.match(value, '^([^\n]*)#(%d+)\n(%d+)\n(.*)$')
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
