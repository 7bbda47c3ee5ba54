import type { Claim } from '@holdfast/core';
import { type Mutate, passOn } from './mutant.js';

/** Keeps something of every claim for ever: no promise to any caller is broken, and memory runs out some day. */
export const mutate: Mutate = (backend) => {
  const kept: Claim[] = [];
  return passOn(backend, {
    attempt(claim) {
      kept.push({ ...claim });
      return backend.attempt(claim);
    },
  });
};
