import { type Mutate, passOn } from './mutant.js';

/** Release frees the name whoever holds it: a holder that comes back late frees its successor's lock. */
export const mutate: Mutate = (backend) =>
  passOn(backend, {
    async release(claim, options) {
      return (await backend.release(claim, options)) || (await backend.forceRelease(claim.name));
    },
  });
