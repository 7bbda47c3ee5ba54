import type { Diagnosis } from '@holdfast/core';
import type { Transport } from './transport.js';

/** What this server's state means for locks. */
export async function diagnose(transport: Transport): Promise<readonly Diagnosis[]> {
  void transport;
  return [];
}
