import { type Mutate, passOn } from './mutant.js';

/** Release frees the name whoever holds it: a holder that comes back late frees its successor's lock. */
export const mutate: Mutate = (backend) =>
  passOn(backend, {
    async release(claim, options) {
      await backend.release(claim, options);
      return backend.forceRelease(claim.name);
    },
  });
