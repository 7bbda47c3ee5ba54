import type { BackendHost, Claim, Grant, LockBackend, LockState } from '@holdfast/core';

/** A backend that breaks one promise on purpose, and the case that must notice. */
export interface Mutant {
  /** What is broken. */
  readonly name: string;
  /** The case that must fail: guarantee and promise. */
  readonly caughtBy: { readonly guarantee: string; readonly promise: string };
  /** Called once for a server; the function that it returns breaks each backend on it. */
  breed(): (inner: LockBackend) => LockBackend;
}

/** A mutant whose backends share nothing. */
export function mutant(
  name: string,
  caughtBy: Mutant['caughtBy'],
  breaking: (inner: LockBackend) => Partial<LockBackend>,
): Mutant {
  return { name, caughtBy, breed: () => (inner) => override(inner, breaking(inner)) };
}

/** A mutant whose backends on one server share a secret of their own. */
export function conspiracy<S>(
  name: string,
  caughtBy: Mutant['caughtBy'],
  secret: () => S,
  breaking: (inner: LockBackend, secret: S) => Partial<LockBackend>,
): Mutant {
  return {
    name,
    caughtBy,
    breed: () => {
      const shared = secret();
      return (inner) => override(inner, breaking(inner, shared));
    },
  };
}

/** The backend with some of its methods replaced. */
export function override(inner: LockBackend, changes: Partial<LockBackend>): LockBackend {
  return new Proxy(inner, {
    get: (target, property) => {
      const changed: unknown = Reflect.get(changes, property);
      if (changed !== undefined) return changed;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Shows another token than the server's wherever one is shown, and takes it back wherever one is given. */
export function retoken(
  inner: LockBackend,
  show: (token: bigint, name: string) => bigint,
): Partial<LockBackend> {
  const real = new Map<string, bigint>();
  const shown = new Map<string, bigint>();
  const present = (name: string, owner: string, token: bigint): bigint => {
    const known = shown.get(owner);
    if (known !== undefined) return known;
    const fake = show(token, name);
    shown.set(owner, fake);
    real.set(owner, token);
    return fake;
  };
  const truly = (grant: Grant): Grant => ({
    ...grant,
    fencingToken: real.get(grant.claim.owner) ?? grant.fencingToken,
  });
  return {
    async attempt(claim) {
      const answer = await inner.attempt(claim);
      if (!('fencingToken' in answer)) return answer;
      return { ...answer, fencingToken: present(claim.name, claim.owner, answer.fencingToken) };
    },
    renew: (grants) => inner.renew(grants.map(truly)),
    extend: (grant, ttl) => inner.extend(truly(grant), ttl),
    inspect: async (name) => {
      const state = await inner.inspect(name);
      const token = state.owner === undefined ? undefined : shown.get(state.owner);
      return token === undefined ? state : { ...state, fencingToken: token };
    },
  };
}

/** Stores every name under another. */
export function rename(inner: LockBackend, stored: (name: string) => string): Partial<LockBackend> {
  const claimed = (claim: Claim): Claim => ({ ...claim, name: stored(claim.name) });
  const granted = (grant: Grant): Grant => ({ ...grant, claim: claimed(grant.claim) });
  return {
    async attempt(claim) {
      const answer = await inner.attempt(claimed(claim));
      return 'fencingToken' in answer ? { ...answer, claim } : answer;
    },
    awaitTurn: (claim, contended, signal) => inner.awaitTurn(claimed(claim), contended, signal),
    renew: (grants) => inner.renew(grants.map(granted)),
    extend: (grant, ttl) => inner.extend(granted(grant), ttl),
    release: (claim, options) => inner.release(claimed(claim), options),
    inspect: async (name): Promise<LockState> => ({ ...(await inner.inspect(stored(name))), name }),
    forceRelease: (name, expected) => inner.forceRelease(stored(name), expected),
  };
}

/** Remembers the host that core lends, for mutants that need the clock. */
export function listening(inner: LockBackend): {
  readonly open: LockBackend['open'];
  readonly host: () => BackendHost;
} {
  let heard: BackendHost | undefined;
  return {
    open: (host) => {
      heard = host;
      return inner.open(host);
    },
    host: () => {
      if (heard === undefined) throw new Error('open() comes first');
      return heard;
    },
  };
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Resolves after a time, or when the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
