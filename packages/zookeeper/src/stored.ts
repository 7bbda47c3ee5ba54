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
  if (metadata !== undefined) return encode({ session: timeout, metadata });
  if (plain?.timeout !== timeout) plain = { timeout, data: encode({ session: timeout }) };
  return plain.data;
}

/** What almost every claim's node holds. */
let plain: { readonly timeout: number; readonly data: Buffer } | undefined;

function encode(data: NodeData): Buffer {
  return Buffer.from(JSON.stringify(data));
}

export const TAIL = encode({ tail: true });

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
