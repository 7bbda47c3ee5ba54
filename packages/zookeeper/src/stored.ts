import type { Claim } from '@holdfast/core';
import type { Session } from './session.js';

/** What a claim's node holds, as JSON. */
export interface NodeData {
  /** The timeout of the claim's session, ms: how long the node outlives a holder that dies. */
  readonly session?: number;
  readonly metadata?: string | undefined;
  /** Released; the name stays taken until the node goes. */
  readonly tail?: true;
}

export function encodeData({ metadata }: Claim, { timeout }: Session): Buffer {
  return Buffer.from(JSON.stringify({ session: timeout, metadata } satisfies NodeData));
}

export const TAIL = Buffer.from(JSON.stringify({ tail: true } satisfies NodeData));

/** A node that somebody else wrote says nothing. */
export function decodeData(data: Buffer): NodeData {
  try {
    const value: unknown = JSON.parse(data.toString());
    if (typeof value !== 'object' || value === null) return {};
    const { session, metadata, tail } = value as Record<keyof NodeData, unknown>;
    return {
      ...(typeof session === 'number' ? { session } : {}),
      ...(typeof metadata === 'string' ? { metadata } : {}),
      ...(tail === true ? { tail } : {}),
    };
  } catch {
    return {};
  }
}
