import { systemClock } from '@holdfast/core';
import { expect, it } from 'vitest';
import { WaitingRoom } from './waiting-room.js';

it.each(['', 'grant', 'grant x 1 o', 'grant 1 x o', 'grant 1.5 1 o', 'wake x o', 'wake  o', 'other 1 o'])(
  'a message that is none of ours (%j) throws nothing and gives nothing',
  (message) => {
    const room = new WaitingRoom({
      clock: systemClock,
      placeOf: () => '+channel',
      refresh: () => Promise.reject(new Error('nobody asks')),
      onRound: () => undefined,
    });
    const candidate = room.enter({ name: 'job', owner: 'o', ttl: 30_000, queue: true, renew: true });
    candidate.seen(0, 1);
    expect(() => room.hear(message)).not.toThrow();
    expect(candidate.takeHandOver()).toBeUndefined();
    room.close();
  },
);
