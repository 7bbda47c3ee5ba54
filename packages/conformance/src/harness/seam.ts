import { setMaxListeners } from 'node:events';
import {
  BackendError,
  type BackendHost,
  type Claim,
  type LockBackend,
  type LostReason,
} from '@holdfast/core';
import { type Deferred, defer } from './time.js';

/** The calls of the seam that a case can disturb. */
export type SeamMethod =
  | 'attempt'
  | 'awaitTurn'
  | 'renew'
  | 'extend'
  | 'release'
  | 'adopt'
  | 'inspect'
  | 'forceRelease'
  | 'verify'
  | 'detach';

const METHODS: readonly SeamMethod[] = [
  'attempt',
  'awaitTurn',
  'renew',
  'extend',
  'release',
  'adopt',
  'inspect',
  'forceRelease',
  'verify',
  'detach',
];

/** What happens to a call: `pass` lets it through to the backend under test. */
export type Fault = (pass: () => Promise<unknown>, args: readonly unknown[]) => Promise<unknown>;

/** A call that was made, in the order of the calls. */
export interface SeamCall {
  readonly method: SeamMethod;
  readonly args: readonly unknown[];
}

/** Calls that are held up until the case lets them go. */
export interface Gate {
  /** Resolves when the first call is held here. */
  readonly arrived: Promise<void>;
  /** Lets held calls go, and later ones pass. */
  open(): void;
}

/**
 * Stands between core and the backend under test, and disturbs calls as a bad network would: so that lost answers,
 * late answers and silence are tried with every backend, without its server's help. Undisturbed, it only counts.
 */
export class Seam {
  /** The backend under test as core sees it. */
  readonly backend: LockBackend;
  readonly calls: SeamCall[] = [];
  readonly #faults: { readonly methods: readonly SeamMethod[]; readonly fault: Fault }[] = [];
  readonly #hung = new Set<Deferred<unknown>>();
  readonly #arrivals = new Set<{ readonly method: SeamMethod; readonly told: () => void }>();
  #cut = freshCut();
  #deaf = false;

  constructor(inner: LockBackend) {
    this.backend = new Proxy(inner, {
      get: (target, property) => {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        if (property === 'open') return (host?: BackendHost) => target.open(this.#hostFor(host));
        if (!isDisturbable(property)) return value.bind(target);
        return (...args: unknown[]) => this.#call(target, property, value as AnyMethod, args);
      },
    });
  }

  /** A backend may tell core early that a grant is gone: a party that is cut off does not hear it. */
  #hostFor(host: BackendHost | undefined): BackendHost | undefined {
    if (host === undefined) return undefined;
    return {
      clock: host.clock,
      commandTimeout: host.commandTimeout,
      lost: (owner: string, reason: LostReason, cause?: Error) => {
        if (!this.#deaf) host.lost(owner, reason, cause);
      },
      report: (error: Error) => host.report(error),
    };
  }

  #call(target: LockBackend, method: SeamMethod, inner: AnyMethod, args: unknown[]): Promise<unknown> {
    this.calls.push({ method, args });
    for (const arrival of this.#arrivals) {
      if (arrival.method !== method) continue;
      this.#arrivals.delete(arrival);
      arrival.told();
    }
    const pass = async (): Promise<unknown> =>
      method === 'awaitTurn' ? this.#awaitTurn(target, args) : inner.apply(target, args);
    const disturbed = this.#faults.findLast(({ methods }) => methods.includes(method));
    return disturbed === undefined ? pass() : disturbed.fault(pass, args);
  }

  /** A waiter that is cut off no longer keeps its place alive. */
  async #awaitTurn(target: LockBackend, args: unknown[]): Promise<void> {
    const [claim, contended, signal] = args as Parameters<LockBackend['awaitTurn']>;
    const cut = this.#cut.signal;
    const either = new AbortController();
    const abort = (): void => either.abort();
    signal.addEventListener('abort', abort, { once: true });
    cut.addEventListener('abort', abort, { once: true });
    if (signal.aborted || cut.aborted) abort();
    try {
      await target.awaitTurn(claim, contended, either.signal);
    } finally {
      signal.removeEventListener('abort', abort);
      cut.removeEventListener('abort', abort);
    }
    if (cut.aborted && !signal.aborted) throw unavailable('awaitTurn');
  }

  /** How often core called. */
  count(method: SeamMethod): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  /** The claims of the calls of a method that takes one. */
  claims(method: 'attempt' | 'release'): readonly Claim[] {
    return this.calls.filter((call) => call.method === method).map((call) => call.args[0] as Claim);
  }

  /** Resolves at core's next call of that method. */
  next(method: SeamMethod): Promise<void> {
    return new Promise((told) => this.#arrivals.add({ method, told }));
  }

  /** Disturbs calls until the returned function is called. The last fault set for a method counts. */
  intercept(methods: SeamMethod | readonly SeamMethod[], fault: Fault): () => void {
    const entry = { methods: typeof methods === 'string' ? [methods] : methods, fault };
    this.#faults.push(entry);
    return () => {
      const index = this.#faults.indexOf(entry);
      if (index >= 0) this.#faults.splice(index, 1);
    };
  }

  /** The request never arrives, and the caller is told so. */
  refuse(...methods: SeamMethod[]): () => void {
    return this.intercept(methods, async (_pass, _args) => {
      throw unavailable(methods.join(', '));
    });
  }

  /** The request is carried out, and its answer is lost: the caller knows nothing. `times` limits it to the first ones. */
  dropAnswers(methods: SeamMethod | readonly SeamMethod[], times: number = Infinity): () => void {
    let left = times;
    return this.intercept(methods, async (pass) => {
      const answer = await pass();
      if (left <= 0) return answer;
      left--;
      throw unavailable('answer lost');
    });
  }

  /** The request is carried out, and its answer comes `ms` later. */
  delayAnswers(
    methods: SeamMethod | readonly SeamMethod[],
    ms: number,
    times: number = Infinity,
  ): () => void {
    let left = times;
    return this.intercept(methods, async (pass) => {
      const late = left > 0;
      left--;
      const answer = await pass();
      if (late) await new Promise((resolve) => setTimeout(resolve, ms));
      return answer;
    });
  }

  /** Silence: the request never arrives and is never answered. */
  hang(...methods: SeamMethod[]): () => void {
    return this.intercept(methods, () => {
      const silence = defer<unknown>();
      this.#hung.add(silence);
      return silence.promise;
    });
  }

  /** Holds calls up: on their way to the server, or their answers on the way back. */
  gate(
    methods: SeamMethod | readonly SeamMethod[],
    where: 'before' | 'after',
    only: (args: readonly unknown[]) => boolean = () => true,
  ): Gate {
    const arrived = defer<void>();
    const opened = defer<unknown>();
    this.#hung.add(opened);
    const undo = this.intercept(methods, async (pass, args) => {
      if (!only(args)) return pass();
      const answer = where === 'after' ? await pass() : undefined;
      arrived.resolve();
      await opened.promise;
      return where === 'after' ? answer : pass();
    });
    return {
      arrived: arrived.promise,
      open: () => {
        undo();
        opened.resolve(undefined);
      },
    };
  }

  /** Nothing reaches the server any more and nothing is heard from it, as if this process had died or was cut off. */
  cut(): void {
    this.#deaf = true;
    this.refuse(...METHODS);
    this.#cut.abort();
  }

  /** Early news of a loss no longer arrives; calls do. */
  deafen(): void {
    this.#deaf = true;
  }

  /** Ends every disturbance. Calls that hung are told that the connection was lost. */
  heal(): void {
    this.#deaf = false;
    this.#faults.length = 0;
    if (this.#cut.signal.aborted) this.#cut = freshCut();
    for (const silence of this.#hung) {
      silence.promise.catch(() => undefined);
      silence.reject(unavailable('connection lost'));
    }
    this.#hung.clear();
  }
}

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

function isDisturbable(property: string | symbol): property is SeamMethod {
  return METHODS.includes(property as SeamMethod);
}

/** Every waiter of the instance listens to it, and Node warns at eleven. */
function freshCut(): AbortController {
  const cut = new AbortController();
  setMaxListeners(0, cut.signal);
  return cut;
}

function unavailable(what: string): BackendError {
  return new BackendError('BACKEND_UNAVAILABLE', `the suite cut the connection (${what})`, {
    transient: true,
  });
}
