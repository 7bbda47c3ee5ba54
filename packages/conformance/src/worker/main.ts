/** A process of its own that takes locks as its parent says. It is killed, stopped and continued by the cases. */
import { closeSync, openSync, unlinkSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { connect, createLocks, isHoldfastError, type LockHandle, type Locks } from '@holdfast/core';
import type { ChildSpec, ConformanceOptions } from '../options.js';
import type { Competition, Order, Reply, Request, ToldHold } from './protocol.js';

let opened: Locks | undefined;
const holds = new Map<string, LockHandle>();

process.on('message', (request: Request) => {
  answer(request).then(send, (error: unknown) => send({ id: request.id, error: describeError(error) }));
});

async function answer({ id, order }: Request): Promise<Reply> {
  const value = await obey(order);
  return { id, value };
}

async function obey(order: Order): Promise<unknown> {
  switch (order.op) {
    case 'open':
      opened = await openLocks(order.spec, order.prefix);
      opened.on('waiting', ({ name = '' }) => send({ event: 'waiting', name }));
      return true;
    case 'acquire':
      return keep(await locks().lock(order.name).acquire(order.options));
    case 'tryAcquire': {
      const hold = await locks().lock(order.name).tryAcquire(order.options);
      return hold === null ? null : keep(hold);
    }
    case 'adopt':
      return keep(await locks().adopt(order.serialized));
    case 'serialize':
      return held(order.owner).serialize();
    case 'isHeld':
      return held(order.owner).isHeld();
    case 'release':
      return held(order.owner).release();
    case 'block':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, order.ms);
      return held(order.owner).isHeld();
    case 'compete':
      return compete(order);
    case 'acquireAlone':
      process.disconnect();
      return alone(order);
    case 'leave':
      process.disconnect();
      return true;
    case 'close':
      await opened?.close();
      return true;
  }
}

async function openLocks(spec: ChildSpec, prefix: string): Promise<Locks> {
  if ('url' in spec) return connect(`${spec.url}${spec.url.includes('?') ? '&' : '?'}prefix=${prefix}`);
  const specifier = isAbsolute(spec.module) ? pathToFileURL(spec.module).href : spec.module;
  const module = (await import(specifier)) as Record<string, ConformanceOptions['create']>;
  const name = spec.export ?? 'create';
  const create = module[name];
  if (create === undefined) throw new Error(`${spec.module} has no export ${name}`);
  return createLocks(await create({ ...spec.options, prefix }));
}

async function compete(order: Extract<Order, { op: 'compete' }>): Promise<Competition> {
  const tokens: string[] = [];
  let overlaps = 0;
  for (let round = 0; round < order.rounds; round++) {
    await locks()
      .lock(order.name)
      .run(async (hold) => {
        tokens.push(String(hold.fencingToken));
        if (round === 0) send({ event: 'entered', name: order.name });
        if (!enter(order.inside)) {
          overlaps++;
          return;
        }
        await sleep(2);
        unlinkSync(order.inside);
      }, order.options);
  }
  return { tokens, overlaps };
}

/** False when somebody is inside. */
function enter(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx'));
    return true;
  } catch {
    return false;
  }
}

/** The parent hears the outcome on standard output, since the line is cut. */
async function alone(order: Extract<Order, { op: 'acquireAlone' }>): Promise<void> {
  try {
    const hold = await locks().lock(order.name).acquire(order.options);
    process.stdout.write(`acquired ${hold.fencingToken}\n`);
  } catch (error) {
    const { code, name } = describeError(error);
    process.stdout.write(`failed ${code ?? name}\n`);
  }
}

function keep(hold: LockHandle): ToldHold {
  holds.set(hold.owner, hold);
  hold.signal.addEventListener('abort', () => {
    send({
      event: 'lost',
      owner: hold.owner,
      reason: String((hold.signal.reason as { reason?: string }).reason),
    });
  });
  return { owner: hold.owner, fencingToken: String(hold.fencingToken), ttl: hold.ttl };
}

function held(owner: string): LockHandle {
  const hold = holds.get(owner);
  if (hold === undefined) throw new Error(`no hold of ${owner}`);
  return hold;
}

function locks(): Locks {
  if (opened === undefined) throw new Error('open comes first');
  return opened;
}

function describeError(error: unknown): { name: string; code?: string; message: string } {
  if (!(error instanceof Error)) return { name: 'unknown', message: String(error) };
  const { name, message } = error;
  return isHoldfastError(error) ? { name, message, code: error.code } : { name, message };
}

function send(reply: Reply): void {
  if (process.connected) process.send?.(reply);
}
