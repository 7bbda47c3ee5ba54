import { expect, it } from 'vitest';
import { stillKeepsOut } from './server.js';

it.each([
  ['has just started', 'uptime_in_seconds:0', 2000],
  ['says 1, and may have started a moment ago', 'uptime_in_seconds:1', 2000],
  ['has been up for a second at least', 'uptime_in_seconds:2', 1000],
  ['has been up for the grace', 'uptime_in_seconds:3', 0],
  ['has been up for long', 'uptime_in_seconds:86400', 0],
  ['does not say', 'redis_version:7', 2000],
])('a server that %s keeps out for what is left of the grace', (_what, line, wait) => {
  expect(stillKeepsOut(`# Server\r\n${line}\r\nhz:10\r\n`, 2000)).toBe(wait);
});
