import type { Grant } from '@holdfast/core';
import { type Mutate, passOn } from './mutant.js';

/** Tokens count the grants of each process by itself: across processes they repeat and fall. */
export const mutate: Mutate = (backend) => {
  const sound = new Map<string, Grant>();
  let last = 0n;
  const original = (grant: Grant): Grant => sound.get(grant.claim.owner) ?? grant;
  return passOn(backend, {
    async attempt(claim) {
      const answer = await backend.attempt(claim);
      if (!('fencingToken' in answer)) return answer;
      sound.set(claim.owner, answer);
      last += 1n;
      return { ...answer, fencingToken: last };
    },
    renew: (grants) => backend.renew(grants.map(original)),
    extend: (grant, ttl) => backend.extend(original(grant), ttl),
    async release(claim, options) {
      sound.delete(claim.owner);
      return backend.release(claim, options);
    },
  });
};
