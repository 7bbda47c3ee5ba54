import { systemClock } from '@holdfast/core';
import { expect, it, vi } from 'vitest';
import { WaitingRoom } from './waiting-room.js';

it.each(['', 'wake', 'wake 0', 'wake x o', 'wake 1.5 o', 'wake -1 o', 'wake  o', 'wake 0 o o', 'other 0 o'])(
  'a message that is none of ours (%j) throws nothing and gives nothing',
  (message) => {
    const room = new WaitingRoom({
      clock: systemClock,
      placeOf: () => '+channel',
      refresh: () => Promise.reject(new Error('nobody asks')),
      onRound: () => undefined,
    });
    const claim = { name: 'job', owner: 'o', ttl: 30_000, queue: true, renew: true };
    const candidate = room.enter(claim);
    room.queued(candidate, { position: 2 }, 0);
    const come = vi.spyOn(candidate, 'come');
    expect(() => room.hear(message)).not.toThrow();
    expect(come).not.toHaveBeenCalled();
    room.hear('wake 0 o');
    expect(come).toHaveBeenCalledOnce();
    room.close();
  },
);
