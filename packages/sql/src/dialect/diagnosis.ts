import type { Diagnosis } from '@holdfast/core';

/** A server's clock that is this far from ours, ms, is worth a word: expiry, tokens and `since` come from it. */
const FAR_OFF = 1000;

/**
 * The server's clock beside ours.
 *
 * @param ahead ms by which the server's is ahead
 */
export function clockDiagnosis(id: string, ahead: number): Diagnosis {
  const off = `${Math.abs(Math.round(ahead))} ms ${ahead < 0 ? 'behind' : 'ahead of'} this machine's`;
  const finding = `the server's clock is ${off}`;
  if (Math.abs(ahead) < FAR_OFF) return { level: 'ok', id, finding };
  return {
    level: 'warning',
    id,
    finding: `${finding}; the server's alone counts`,
    advice: 'run NTP on the server: a step of its clock lengthens or cuts every ttl, and tokens follow it',
  };
}

/** ms by which `server` was ahead, where ours was read before and after it. */
export function aheadBy(server: number, before: number, after: number): number {
  return server - (before + after) / 2;
}
