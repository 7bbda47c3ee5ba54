import type { BackendHost, LockBackend } from '../backend.js';
import type { LostReason } from '../errors.js';
import { BackendError } from '../errors.js';
import type { ManualClock } from '../testing/manual-clock.js';
import type { ClientClock } from './client-clock.js';

/** What becomes of one request. Delays are in ms of true time. */
export type Fate =
  | { readonly kind: 'pass' }
  | { readonly kind: 'slow'; readonly there: number; readonly back: number }
  /** Carried out; the caller is told that the connection broke. */
  | { readonly kind: 'answer lost' }
  /** Not carried out; the caller is told. */
  | { readonly kind: 'refused' }
  /** Carried out; the caller hears nothing, ever. */
  | { readonly kind: 'answer swallowed' }
  /** Not carried out, and the caller hears nothing. */
  | { readonly kind: 'request swallowed' };

const DISTURBED = ['attempt', 'renew', 'extend', 'release', 'adopt', 'inspect', 'forceRelease'] as const;

type Disturbed = (typeof DISTURBED)[number];

/**
 * The line between one client and the server: requests arrive in the order in which they were sent, as on one
 * connection; each meets the next of the fates that were drawn. After `heal` every request passes.
 */
export class Line {
  readonly backend: LockBackend;
  readonly #fates: readonly Fate[];
  readonly #true: ManualClock;
  readonly #client: ClientClock;
  #next = 0;
  #arrived: Promise<void> = Promise.resolve();
  #healed = false;

  constructor(server: LockBackend, trueClock: ManualClock, client: ClientClock, fates: readonly Fate[]) {
    this.#true = trueClock;
    this.#client = client;
    this.#fates = fates;
    this.backend = new Proxy(server, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        if (property === 'open') return (host?: BackendHost) => target.open(this.#lend(host));
        if (property === 'awaitTurn') {
          return async (...args: Parameters<LockBackend['awaitTurn']>) => {
            await target.awaitTurn(...args);
            await client.running();
          };
        }
        if (!DISTURBED.includes(property as Disturbed)) return value.bind(target);
        return (...args: unknown[]) => this.#send(() => Reflect.apply(value, target, args));
      },
    });
  }

  heal(): void {
    this.#healed = true;
  }

  /** News of a loss does not reach a process that stands still. */
  #lend(host: BackendHost | undefined): BackendHost | undefined {
    if (host === undefined) return undefined;
    const lost = (owner: string, reason: LostReason): void => {
      if (this.#client.isRunning) host.lost(owner, reason);
    };
    return { ...host, lost };
  }

  async #send(carryOut: () => Promise<unknown>): Promise<unknown> {
    const fate: Fate = this.#healed ? { kind: 'pass' } : (this.#fates[this.#next++] ?? { kind: 'pass' });
    const earlier = this.#arrived;
    const there = fate.kind === 'slow' ? fate.there : 0;
    const arrives = Promise.all([earlier, this.#pass(there)]).then(() => undefined);
    this.#arrived = arrives;
    await arrives;
    const answer = await meet(fate, carryOut);
    if (fate.kind === 'slow') await this.#pass(fate.back);
    await this.#client.running();
    return answer();
  }

  #pass(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#true.setTimer(ms, resolve));
  }
}

async function meet(fate: Fate, carryOut: () => Promise<unknown>): Promise<() => unknown> {
  const broken = (): never => {
    throw new BackendError('BACKEND_UNAVAILABLE', `the model says: ${fate.kind}`);
  };
  switch (fate.kind) {
    case 'pass':
    case 'slow':
      return settled(carryOut);
    case 'answer lost':
      await settled(carryOut);
      return broken;
    case 'refused':
      return broken;
    case 'answer swallowed':
      await settled(carryOut);
      return new Promise(() => undefined);
    case 'request swallowed':
      return new Promise(() => undefined);
  }
}

async function settled(carryOut: () => Promise<unknown>): Promise<() => unknown> {
  try {
    const value = await carryOut();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
