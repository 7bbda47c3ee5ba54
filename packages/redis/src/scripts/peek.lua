-- Reads one key.
--
-- KEYS  1 any string
return redis.call('GET', KEYS[1])
