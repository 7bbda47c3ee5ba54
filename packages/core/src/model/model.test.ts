import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LockBackend } from '../backend.js';
import { play, type Spoil } from './play.js';
import { type Scope, story } from './story.js';

/**
 * Stories for each scope: `HOLDFAST_MODEL_RUNS` asks for more. They are the same ones every time, so that a change is judged
 * by itself; `HOLDFAST_MODEL_SEED` asks for others, `random` for some that nobody has heard.
 */
const RUNS = Number(process.env.HOLDFAST_MODEL_RUNS ?? 100);
const SEED = process.env.HOLDFAST_MODEL_SEED ?? '1';
const seeded = SEED === 'random' ? {} : { seed: Number(SEED) };

const CALM: Scope = { clients: 3, names: 2, faults: false, pauses: false, force: false };

/**
 * Random stories on a clock that is told, shrunk when one fails: fast-check prints the seed and the shortest story that
 * still goes wrong, which then becomes a case in `counterexamples.test.ts`.
 */
describe('the model', () => {
  it.each<[string, Scope]>([
    ['clients that only want locks', CALM],
    ['a network that loses, delays and refuses', { ...CALM, faults: true }],
    ['processes that stand still and clocks that are set', { ...CALM, pauses: true }],
    ['somebody who breaks locks by force', { ...CALM, force: true }],
    ['all of it on one name', { clients: 3, names: 1, faults: true, pauses: true, force: true }],
    ['two clients, everything but force', { clients: 2, names: 1, faults: true, pauses: true, force: false }],
  ])(
    'keeps the specification with %s',
    async (_, scope) => {
      await fc.assert(
        fc.asyncProperty(story(scope), (told) => play(told)),
        { numRuns: RUNS, ...seeded },
      );
    },
    600_000,
  );
});

/** The server with some of its answers falsified. */
function spoiling(changes: (server: LockBackend) => Partial<LockBackend>): Spoil {
  return (server) =>
    new Proxy(server, {
      get: (target, property) => {
        const changed: unknown = Reflect.get(changes(server), property);
        if (changed !== undefined) return changed;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
}

/** The model is no use if it cannot fail: each of these servers is wrong on purpose, and a story must show it. */
describe('the model notices a server that', () => {
  it.each<[string, Spoil]>([
    [
      'frees a lock earlier than it says',
      spoiling((server) => ({
        attempt: async (claim) => {
          const answer = await server.attempt({ ...claim, ttl: claim.ttl * 0.98 });
          return 'fencingToken' in answer ? { ...answer, claim, ttl: claim.ttl } : answer;
        },
      })),
    ],
    [
      'renews what is no longer ours',
      spoiling(() => ({ renew: async (grants) => grants.map(({ ttl }) => ({ renewed: true, ttl })) })),
    ],
    [
      'mints one token for all',
      spoiling((server) => ({
        attempt: async (claim) => {
          const answer = await server.attempt(claim);
          return 'fencingToken' in answer ? { ...answer, fencingToken: 1n } : answer;
        },
      })),
    ],
    [
      'releases whoever holds',
      spoiling((server) => ({
        release: async (claim, options) =>
          (await server.release(claim, options)) || server.forceRelease(claim.name),
      })),
    ],
    ['forgets tails', spoiling((server) => ({ release: (claim) => server.release(claim) }))],
  ])('%s', async (_, spoil) => {
    const scope: Scope = { clients: 3, names: 1, faults: true, pauses: true, force: false };
    const details = await fc.check(
      fc.asyncProperty(story(scope), (told) => play(told, spoil)),
      { numRuns: 2000, endOnFailure: true, ...seeded },
    );
    expect(details.failed).toBe(true);
  });
});
