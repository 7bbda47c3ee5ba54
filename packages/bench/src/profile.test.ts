import { expect, it } from 'vitest';
import { layerOf, profile } from './profile.js';

it.each([
  ['(idle)', '', 'waiting for the server'],
  ['(garbage collector)', '', 'garbage collection'],
  ['writeUtf8String', '', 'Node.js and system calls'],
  ['emit', 'node:events', 'Node.js and system calls'],
  [
    'sendCommand',
    'file:///app/node_modules/.pnpm/ioredis@6/node_modules/ioredis/built/Redis.js',
    'client library',
  ],
  ['call', 'file:///app/packages/core/dist/engine.js', 'Holdfast, core'],
  ['run', 'file:///app/packages/redis/dist/link.js', 'Holdfast, backend'],
])('%s in %j is %s', (functionName, url, layer) => {
  expect(layerOf({ functionName, url })).toBe(layer);
});

it('tells waiting from working', async () => {
  const waited = await profile(async () => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    return 1;
  });
  const worked = await profile(async () => {
    const end = performance.now() + 200;
    while (performance.now() < end) JSON.stringify({ end });
    return 1;
  });
  expect(waited['waiting for the server']).toBeGreaterThan(worked['waiting for the server']);
  expect(worked['Node.js and system calls']).toBeGreaterThan(waited['Node.js and system calls']);
});
