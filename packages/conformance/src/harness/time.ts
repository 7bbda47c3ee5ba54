/** Every time bound of the suite is multiplied by this: set `HOLDFAST_TIME_FACTOR` above 1 on a slow machine. */
export const TIME_FACTOR = readFactor(process.env.HOLDFAST_TIME_FACTOR);

/**
 * "At once", ms: generous for a busy machine, and far below the long ttls that the cases use, so that what happens
 * within it cannot be explained by an expiry.
 */
export const PROMPT = 4000 * TIME_FACTOR;

/** A wait that runs out soon, ms, yet not before a busy server has answered once. */
export const SHORT_WAIT = 600 * TIME_FACTOR;

/** For instances whose server will not answer: the case need not wait for long, and a busy server can still answer. */
export const IMPATIENT = { commandTimeout: 1500 * TIME_FACTOR } as const;

function readFactor(text: string | undefined): number {
  if (text === undefined || text === '') return 1;
  const factor = Number(text);
  if (!Number.isFinite(factor) || factor <= 0) {
    throw new RangeError(`HOLDFAST_TIME_FACTOR is ${JSON.stringify(text)}; allowed: a number above zero`);
  }
  return factor;
}

/** The promise's own outcome, or a failure that says what did not happen within `ms`. */
export async function within<T>(
  what: string | (() => string),
  promise: Promise<T>,
  ms: number = PROMPT,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const fail = (): void => {
      const said = typeof what === 'string' ? what : what();
      reject(new Error(`${said}: did not happen within ${Math.round(ms)} ms`));
    };
    timer = setTimeout(fail, Math.min(ms, 2 ** 31 - 1));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks again and again until it is so: for the state of a server, which tells nobody when it changes. */
export async function eventually(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  ms: number = PROMPT,
): Promise<void> {
  const end = performance.now() + ms;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`${what}: not so after ${Math.round(ms)} ms`);
    await elapse(10);
  }
}

/** Lets time pass, where the passing of time is what the case is about. */
export function elapse(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** How a promise ended, as a value: for outcomes that are compared, and so that no rejection goes unhandled meanwhile. */
export type Outcome<T> =
  | { readonly status: 'fulfilled'; readonly value: T; readonly after: number }
  | { readonly status: 'rejected'; readonly reason: unknown; readonly after: number };

/** Waits for the promise to end, however it does. `after` is the time that it took, ms. */
export async function outcome<T>(promise: Promise<T>): Promise<Outcome<T>> {
  const start = performance.now();
  try {
    const value = await promise;
    return { status: 'fulfilled', value, after: performance.now() - start };
  } catch (reason) {
    return { status: 'rejected', reason, after: performance.now() - start };
  }
}

/** A promise with its handles outside. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

export function defer<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
