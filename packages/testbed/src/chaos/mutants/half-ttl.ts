import { type Mutate, passOn } from './mutant.js';

/** The server keeps a grant for half of the ttl that the holder counts on. */
export const mutate: Mutate = (backend) =>
  passOn(backend, {
    async attempt(claim) {
      const answer = await backend.attempt({ ...claim, ttl: Math.ceil(claim.ttl / 2) });
      return 'fencingToken' in answer ? { ...answer, ttl: claim.ttl } : answer;
    },
    async renew(grants) {
      const halves = grants.map((grant) => ({ ...grant, ttl: Math.ceil(grant.ttl / 2) }));
      const renewals = await backend.renew(halves);
      return renewals.map((renewal, index) =>
        renewal.renewed === true ? { ...renewal, ttl: grants[index]?.ttl ?? renewal.ttl } : renewal,
      );
    },
  });
