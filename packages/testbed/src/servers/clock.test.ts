import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { fakeClock } from '../processes/clock.js';
import { startRedis } from './redis.js';

const HOUR = 3_600;

test('a Redis server lives by the clock that it is given', async () => {
  using clock = fakeClock();
  await using redis = await startRedis({ clock });
  const client = new Redis(redis.url);
  const ahead = async () => Number((await client.time())[0]) - Date.now() / 1000;
  await client.set('key', 'value', 'PX', 60_000);
  clock.set(HOUR * 1000);
  expect(await ahead()).toBeGreaterThan(HOUR - 60);
  expect(await client.get('key')).toBeNull();
  clock.set(-HOUR * 1000);
  expect(await ahead()).toBeLessThan(60 - HOUR);
  client.disconnect();
});
