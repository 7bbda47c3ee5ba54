import type { AcquireOptions, Duration } from '@holdfast/core';
import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';
import { PROMPT, within } from '../harness/time.js';

const YEAR = 365 * 24 * 3_600_000;

const NEVER: readonly unknown[] = [
  ...[Number.NaN, -1, -0.5, -Infinity, null, {}, [], true, 5n],
  ...[
    '',
    '5',
    '1.5',
    's',
    '1 s',
    ' 1s',
    '1s ',
    '-1s',
    '+1s',
    '1S',
    '1sec',
    '1w',
    '1e3ms',
    '.5s',
    '1.s',
    '1,5s',
    'Infinity',
  ],
];

/** What each argument allows besides: the rest of `NEVER` is refused for all. */
const REFUSED: Readonly<Record<'ttl' | 'minHold' | 'maxHold' | 'wait', readonly unknown[]>> = {
  ttl: [...NEVER, 0, '0s', Infinity, YEAR + 1, '366d'],
  minHold: [...NEVER, 0, '0s', Infinity, YEAR + 1, '366d'],
  maxHold: [...NEVER, 0, '0s', YEAR + 1, '366d'],
  wait: [...NEVER],
};

/** Durations are checked, read by one rule, and fitted to the backend's grain. */
export const durations: Guarantee = {
  name: 'durations',
  cases: {
    async 'what is no duration is InvalidArgumentError that names the argument, and nothing is sent'(t) {
      const a = await t.open();
      const name = t.name();
      for (const [argument, values] of Object.entries(REFUSED)) {
        for (const value of values) {
          const options = { [argument]: value } as AcquireOptions;
          const what = `${argument} ${typeof value} ${String(value)}`;
          const invalid = { code: 'INVALID_ARGUMENT', argument };
          await expect(a.lock(name).acquire(options), what).rejects.toMatchObject(invalid);
          await expect(
            a.lock(name).run(() => 'never', options),
            what,
          ).rejects.toMatchObject(invalid);
        }
      }
      expect(() => a.lock(name, { ttl: 0 })).toThrow(expect.objectContaining({ argument: 'ttl' }));
      expect(a.seam.calls).toEqual([]);
    },

    async 'ttl-zero-deletes-on-extend: extending by no duration is refused and changes nothing'(t) {
      const [a, b] = await t.pair();
      const hold = await a.acquire(t.name(), { ttl: t.physics.longTtl() });
      const before = (await t.inspect(hold.name)).expiresIn ?? 0;
      for (const value of REFUSED.ttl) {
        await expect(hold.extend(value as Duration), String(value)).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          argument: 'ttl',
        });
      }
      expect(a.seam.count('extend')).toBe(0);
      expect([hold.isHeld(), hold.ttl, await hold.verify()]).toEqual([true, t.physics.longTtl(), true]);
      expect(Math.abs(before - ((await t.inspect(hold.name)).expiresIn ?? 0))).toBeLessThan(PROMPT);
      expect(await b.tryAcquire(hold.name)).toBeNull();
    },

    async 'strings carry their unit'(t) {
      const a = await t.open();
      const written: readonly (readonly [Duration, number])[] = [
        ['20000ms', 20_000],
        ['20s', 20_000],
        ['20.5s', 20_500],
        ['2m', 120_000],
        ['0.5h', 1_800_000],
        ['1d', 86_400_000],
        [30_000, 30_000],
      ];
      const ttls = await Promise.all(written.map(async ([ttl]) => (await a.acquire(t.name(), { ttl })).ttl));
      expect(ttls).toEqual(written.map(([, ms]) => t.physics.effective(ms)));
    },

    async 'ttl-fractional, etcd-ttl-floor: a ttl is raised to the minimum and rounded up to the grain, and shown'(
      t,
    ) {
      const a = await t.open();
      const { min, granularity } = t.physics.capabilities.ttl;
      const asked = [1, min / 2, 123.45, 300, 999, 1000, 1500, 12_345.678, min + granularity / 2];
      const shown = await Promise.all(
        asked.map(async (ttl) => (await a.acquire(t.name(), { ttl, renew: false, wait: PROMPT })).ttl),
      );
      expect(shown).toEqual(asked.map((ttl) => t.physics.effective(ttl)));
      expect(shown.every((ttl, index) => ttl >= (asked[index] ?? 0))).toBe(true);
    },

    async 'ttl-unit-mixup: the server counts the ttl that the handle shows, also after an extension'(t) {
      const a = await t.open();
      const ttl = t.physics.effective(20_000);
      const hold = await a.acquire(t.name(), { ttl, renew: false });
      const first = (await t.inspect(hold.name)).expiresIn ?? Number.NaN;
      expect(first).toBeLessThanOrEqual(hold.ttl);
      expect(first).toBeGreaterThan(t.physics.atLeastLeft(hold.ttl));
      await hold.extend(2 * ttl);
      const second = (await t.inspect(hold.name)).expiresIn ?? Number.NaN;
      expect(second).toBeLessThanOrEqual(hold.ttl);
      expect(second).toBeGreaterThan(t.physics.atLeastLeft(hold.ttl));
    },

    async 'defaults: of the specification, of the instance, of the lock, of the call, each over the one before'(
      t,
    ) {
      const a = await t.open();
      const b = await t.open({ defaults: { ttl: '40s', metadata: 'instance' } });
      const plain = await a.acquire(t.name());
      expect(plain.ttl).toBe(t.physics.effective(30_000));
      const byInstance = await b.acquire(t.name());
      const byLock = await b.lock(t.name(), { ttl: '50s' }).acquire();
      const byCall = await b.lock(t.name(), { ttl: '50s', metadata: 'lock' }).acquire({ ttl: '60s' });
      expect([byInstance.ttl, byLock.ttl, byCall.ttl]).toEqual(
        [40_000, 50_000, 60_000].map((ttl) => t.physics.effective(ttl)),
      );
      const shown = await Promise.all([byInstance, byLock, byCall].map(({ name }) => t.inspect(name)));
      expect(shown.map(({ metadata }) => metadata)).toEqual(['instance', 'instance', 'lock']);
    },

    async 'the longest durations are allowed'(t) {
      const a = await t.open();
      const longest = { ttl: '365d', maxHold: '365d', wait: '3650d' } as const;
      const hold = await within('it is held', a.acquire(t.name(), longest));
      expect([hold.isHeld(), hold.ttl]).toEqual([true, t.physics.effective(YEAR)]);
      const endless = await a.acquire(t.name(), { maxHold: Infinity, wait: Infinity });
      expect(endless.isHeld()).toBe(true);
    },
  },
};
