import { randomInt } from 'node:crypto';
import type { ServerNode } from './handle.js';
import { exchange } from './probe.js';

/** The ids of the sessions that have ephemeral nodes, as this server tells (`dump`). */
export async function zooKeeperSessions({ port, host }: ServerNode): Promise<bigint[]> {
  const title = 'Sessions with Ephemerals';
  const answer = await exchange(port, {
    host,
    send: 'dump',
    timeout: 5_000,
    accept: (received) => received.includes(title) && received.at(-1) === 0x0a,
  });
  const [, list = ''] = answer.toString().split(title);
  return [...list.matchAll(/^(0x[0-9a-f]+):$/gm)].map(([, id]) => BigInt(id ?? 0));
}

/**
 * Ends somebody else's session, as an administrator might, or a stranger with a session's id: its nodes are gone at
 * once, and its client finds out later.
 */
export async function endZooKeeperSession({ port, host }: ServerNode, id: bigint): Promise<void> {
  const close = Buffer.alloc(12);
  close.writeInt32BE(8, 0);
  close.writeInt32BE(randomInt(1, 1000), 4);
  close.writeInt32BE(CLOSE_SESSION, 8);
  await exchange(port, {
    host,
    send: Buffer.concat([handshake(id), close]),
    timeout: 5_000,
    accept(received) {
      // The answer to the handshake has a timeout, 0 for a session that is not there; that to the request follows.
      if (received.length >= 12 && received.readInt32BE(8) === 0) throw new Error(`no session ${id}`);
      return received.length >= 4 + 36 + 4 + 16;
    },
  });
}

const CLOSE_SESSION = -11;

function handshake(id: bigint): Buffer {
  const request = Buffer.alloc(4 + 45);
  request.writeInt32BE(45, 0);
  // The protocol's version and the last transaction seen, both 0.
  request.writeInt32BE(10_000, 16);
  request.writeBigInt64BE(id, 20);
  request.writeInt32BE(16, 28);
  passwordOf(id).copy(request, 32);
  return request;
}

/** Servers draw a session's password from `java.util.Random`, seeded with its id and a constant of their source. */
function passwordOf(id: bigint): Buffer {
  const mask = (1n << 48n) - 1n;
  const factor = 0x5deece66dn;
  let state = (BigInt.asUintN(64, id ^ 0xb3415c00n) ^ factor) & mask;
  const password = Buffer.alloc(16);
  for (let offset = 0; offset < 16; offset += 4) {
    state = (state * factor + 0xbn) & mask;
    password.writeInt32LE(Number(BigInt.asIntN(32, state >> 16n)), offset);
  }
  return password;
}
