import { type Mutate, passOn } from './mutant.js';

/** A waiter that leaves does not take back what it has at the server. */
export const mutate: Mutate = (backend) => {
  const granted = new Set<string>();
  return passOn(backend, {
    async attempt(claim) {
      const answer = await backend.attempt(claim);
      if ('fencingToken' in answer) granted.add(claim.owner);
      return answer;
    },
    async release(claim, options) {
      return granted.delete(claim.owner) ? backend.release(claim, options) : false;
    },
  });
};
