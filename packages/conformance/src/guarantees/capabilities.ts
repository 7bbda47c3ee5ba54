import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';

/** A backend declares its physics; the rest of the suite takes it at its word. */
export const capabilities: Guarantee = {
  name: 'capabilities',
  cases: {
    async 'every capability is declared, within what it may be'(t) {
      const { name, capabilities: declared } = t.observer.locks.backend;
      expect(name).toMatch(/^[a-z][a-z0-9-]*$/);
      expect(declared).toEqual({
        fairness: expect.stringMatching(/^(fifo|none)$/),
        wake: expect.stringMatching(/^(push|poll)$/),
        expiry: expect.stringMatching(/^(server-ttl|session)$/),
        consistency: expect.stringMatching(/^(linearizable|single-node|async-replicated|quorum|in-process)$/),
        crossProcess: expect.any(Boolean),
        transferable: expect.any(Boolean),
        minHold: expect.stringMatching(/^(server|session)$/),
        grace: expect.any(Number),
        ttl: { min: expect.any(Number), max: expect.any(Number), granularity: expect.any(Number) },
      });
      expect(declared.grace).toBeGreaterThan(0);
      expect(declared.ttl.min).toBeGreaterThan(0);
      expect(declared.ttl.max).toBeGreaterThanOrEqual(declared.ttl.min);
      expect(declared.ttl.granularity).toBeGreaterThanOrEqual(0);
      expect(declared.ttl.max).toBeGreaterThanOrEqual(365 * 24 * 3_600_000);
    },

    async 'every instance declares the same'(t) {
      const [a, b] = await t.pair();
      expect(a.locks.backend).toEqual(b.locks.backend);
    },

    async 'in-process is not declared by what crosses processes; what crosses them can be started in another'(
      t,
    ) {
      const { consistency, crossProcess } = t.physics.capabilities;
      expect(crossProcess).toBe(consistency !== 'in-process');
      expect(
        crossProcess && t.options.child === undefined,
        'describeConformance needs the option child',
      ).toBe(false);
    },

    async 'the backend says which tenant it serves'(t) {
      const a = await t.open();
      expect(a.seam.backend.prefix).toBe(t.prefix);
    },
  },
};
