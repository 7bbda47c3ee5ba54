import { setImmediate as turn } from 'node:timers/promises';
import type { Claim, LockBackend } from '@holdfast/core';
import {
  aborted,
  conspiracy,
  listening,
  type Mutant,
  mutant,
  override,
  pause,
  rename,
  retoken,
} from './mutant.js';

const at = (guarantee: string, promise: string): Mutant['caughtBy'] => ({ guarantee, promise });

const NAMES = at(
  'names',
  'sql-truncate-collision, sql-crc32-collision, brace-unclosed, zk-bad-names: every name works, and no two are one',
);

const ALL: readonly Mutant[] = [
  mutant(
    'release does not check the owner',
    at('release', 'release never frees a lock that somebody else holds'),
    (inner) => ({
      release: async (claim, options) =>
        (await inner.release(claim, options)) || inner.forceRelease(claim.name),
    }),
  ),

  mutant(
    'validity counts from the answer',
    at('validity', 'validity counts from before the request was sent, less its margin'),
    (inner) => {
      const { open, host } = listening(inner);
      const attempt: LockBackend['attempt'] = async (claim) => {
        const answer = await inner.attempt(claim);
        if (!('fencingToken' in answer)) return answer;
        return Object.defineProperty({ ...answer }, 'from', { get: () => host().clock.now() });
      };
      return { open, attempt };
    },
  ),

  mutant(
    'a renewal counts from its answer',
    at('validity', 'a renewal counts from before it was sent'),
    (inner) => {
      const { open, host } = listening(inner);
      const renew: LockBackend['renew'] = async (grants) =>
        (await inner.renew(grants)).map((renewal) =>
          Object.defineProperty({ ...renewal }, 'from', { get: () => host().clock.now() }),
        );
      return { open, renew };
    },
  ),

  mutant(
    'the server frees a lock earlier than it says',
    at(
      'exclusion',
      'followers-all-at-once: holds that are never released follow one another, never together',
    ),
    (inner) => ({
      attempt: async (claim) => {
        const answer = await inner.attempt({ ...claim, ttl: claim.ttl / 2 });
        return 'fencingToken' in answer ? { ...answer, claim, ttl: claim.ttl } : answer;
      },
    }),
  ),

  mutant(
    'a renewal takes a lock that has gone',
    at(
      'renewal',
      'renew-recreates: a late renewal does not take a lock that had gone and was used by another',
    ),
    (inner) => ({
      renew: async (grants) => {
        const renewals = await inner.renew(grants);
        return Promise.all(
          grants.map(async ({ claim, ttl }, index) => {
            const renewal = renewals[index] ?? { renewed: false };
            if (renewal.renewed) return renewal;
            const taken = await inner.attempt({ ...claim, queue: false });
            return 'fencingToken' in taken ? { renewed: true, ttl } : renewal;
          }),
        );
      },
    }),
  ),

  mutant(
    'an extension takes a lock that has gone',
    at(
      'renewal',
      'extend-after-expiry-allowed: what has gone cannot be extended, whether another holds it or nobody',
    ),
    (inner) => ({
      extend: async (grant, ttl) => {
        const renewal = await inner.extend(grant, ttl);
        if (renewal.renewed) return renewal;
        const taken = await inner.attempt({ ...grant.claim, ttl, queue: false });
        return 'fencingToken' in taken ? { renewed: true, ttl } : renewal;
      },
    }),
  ),

  mutant(
    'a renewal does not check the owner',
    at('renewal', 'a renewal of a lock that somebody else holds is refused, and leaves theirs as it is'),
    () => ({ renew: async (grants) => grants.map(({ ttl }) => ({ renewed: true, ttl })) }),
  ),

  mutant(
    'the answers of a batch come in another order',
    at('the seam', 'renew answers for each grant in its place, checks owner and token, and makes nothing'),
    (inner) => ({ renew: async (grants) => [...(await inner.renew(grants))].reverse() }),
  ),

  conspiracy(
    'asking again shortens',
    at('the seam', 'asking again never shortens'),
    () => new Map<string, number>(),
    (inner, ends) => {
      const { open, host } = listening(inner);
      const now = (): number => host().clock.now();
      const endsAt = (name: string, ttl: number): void => {
        const end = now() + ttl;
        ends.set(name, end);
        host().clock.setTimer(ttl, () => {
          if (ends.get(name) === end) inner.forceRelease(name).catch(() => undefined);
        });
      };
      return {
        open,
        attempt: async (claim) => {
          const answer = await inner.attempt(claim);
          if ('fencingToken' in answer) endsAt(claim.name, claim.ttl);
          return answer;
        },
        inspect: async (name) => {
          const end = ends.get(name);
          const state = await inner.inspect(name);
          return end === undefined ? state : { ...state, expiresIn: end - now() };
        },
      };
    },
  ),

  conspiracy(
    'asking again is another claim',
    at('errors', 'self-block-own-key: an acquisition whose answer was lost finds itself as the owner'),
    () => new Map<string, string>(),
    (inner, aliases) => {
      const alias = (claim: Claim): Claim => ({ ...claim, owner: aliases.get(claim.owner) ?? claim.owner });
      return {
        attempt: async (claim) => {
          const { owner } = await inner.inspect(claim.name);
          if (owner === alias(claim).owner) aliases.set(claim.owner, `${alias(claim).owner}#`);
          const answer = await inner.attempt(alias(claim));
          return 'fencingToken' in answer ? { ...answer, claim } : answer;
        },
        awaitTurn: (claim, contended, signal) => inner.awaitTurn(alias(claim), contended, signal),
        release: (claim, options) => inner.release(alias(claim), options),
      };
    },
  ),

  mutant(
    'tokens do not rise',
    at('fencing', 'tokens rise with every grant, whichever instance it goes to'),
    (inner) => retoken(inner, () => 7n),
  ),

  conspiracy(
    'tokens start again for a name that was forgotten',
    at('fencing', 'many names that come and go each have rising tokens'),
    () => new Map<string, bigint>(),
    (inner, counters) => {
      const shown = retoken(inner, (_token, name) => {
        const next = (counters.get(name) ?? 0n) + 1n;
        counters.set(name, next);
        return next;
      });
      const release: LockBackend['release'] = async (claim, options) => {
        const released = await inner.release(claim, options);
        const { held, waiters } = await inner.inspect(claim.name);
        if (!held && waiters.length === 0) counters.delete(claim.name);
        return released;
      };
      return { ...shown, release };
    },
  ),

  mutant(
    'tokens are times, and two grants may have one',
    at('fencing', 'tokens of contenders rise in the order of their grants'),
    (inner) => retoken(inner, (token) => token / 1_000_000n),
  ),

  mutant(
    'asking again mints another token',
    at('fencing', 'asking again after a lost answer mints no second token'),
    (inner) => {
      let asked = 0n;
      return {
        attempt: async (claim) => {
          const answer = await inner.attempt(claim);
          asked++;
          return 'fencingToken' in answer ? { ...answer, fencingToken: answer.fencingToken + asked } : answer;
        },
      };
    },
  ),

  mutant(
    'a wake-up that comes before the wait is lost',
    at('waiting', 'zk-watch-gap: a release between the refusal and the wait is not missed'),
    (inner) => ({
      awaitTurn: async (claim, contended, signal) => {
        const woken = inner.awaitTurn(claim, contended, signal).then(() => true);
        const early = await Promise.race([woken, turn(false)]);
        if (early) await aborted(signal);
        else await woken;
      },
    }),
  ),

  mutant(
    'a release wakes nobody',
    at('waiting', 'a waiter is granted at the release, long before any ttl ends'),
    () => ({ awaitTurn: (_claim, { retryAfter = 60_000 }, signal) => pause(retryAfter, signal) }),
  ),

  conspiracy(
    'a release wakes everybody',
    at('fairness', 'a hand-over wakes the next waiter alone'),
    () => new Set<AbortController>(),
    (inner, sleepers) => ({
      awaitTurn: async (_claim, _contended, signal) => {
        const sleeper = new AbortController();
        sleepers.add(sleeper);
        await Promise.race([aborted(sleeper.signal), aborted(signal)]);
        sleepers.delete(sleeper);
      },
      release: async (claim, options) => {
        const released = await inner.release(claim, options);
        for (const sleeper of sleepers) sleeper.abort();
        return released;
      },
    }),
  ),

  conspiracy(
    'a try overtakes waiters',
    at('fairness', 'a newcomer does not overtake a waiter whose turn has come'),
    () => new Map<string, Claim>(),
    (inner, queued) => ({
      attempt: async (claim) => {
        if (claim.queue) queued.set(claim.owner, claim);
        const answer = await inner.attempt(claim);
        if (claim.queue || 'fencingToken' in answer || answer.holder !== undefined) return answer;
        const { waiters } = await inner.inspect(claim.name);
        const passed = waiters.flatMap(({ owner }) => queued.get(owner) ?? []);
        for (const waiter of passed) await inner.release(waiter);
        const taken = await inner.attempt(claim);
        for (const waiter of passed) await inner.attempt(waiter);
        return taken;
      },
    }),
  ),

  conspiracy(
    'the last to come is served first',
    at('fairness', 'waiters are served in the order in which they came'),
    () => new Map<string, Claim>(),
    (inner, queued) => ({
      attempt: async (claim) => {
        const answer = await inner.attempt(claim);
        if (!claim.queue || 'fencingToken' in answer || queued.has(claim.owner)) return answer;
        queued.set(claim.owner, claim);
        const { waiters } = await inner.inspect(claim.name);
        const before = waiters.flatMap(({ owner }) =>
          owner === claim.owner ? [] : (queued.get(owner) ?? []),
        );
        for (const waiter of before) await inner.release(waiter);
        for (const waiter of before) await inner.attempt(waiter);
        return answer;
      },
      awaitTurn: (_claim, _contended, signal) => pause(10, signal),
    }),
  ),

  mutant(
    'asking again loses the place',
    at('the seam', 'a waiter that asks again keeps its place'),
    (inner) => ({
      attempt: async (claim) => {
        const { owner } = await inner.inspect(claim.name);
        if (owner !== claim.owner) await inner.release(claim);
        await pause(5);
        return inner.attempt(claim);
      },
    }),
  ),

  conspiracy(
    'a dead waiter blocks the queue',
    at('fairness', 'fair-timeout-drift: waiters that died together delay the queue by one grace'),
    () => new Set<string>(),
    (inner, gone) => {
      // Something asks on behalf of a waiter that no longer does.
      const keepAlive = async (claim: Claim): Promise<void> => {
        for (;;) {
          await pause(50);
          if (gone.has(claim.owner)) return;
          if ('fencingToken' in (await inner.attempt(claim))) return;
        }
      };
      return {
        attempt: async (claim) => {
          const answer = await inner.attempt(claim);
          if ('fencingToken' in answer) gone.add(claim.owner);
          else if (claim.queue) keepAlive(claim).catch(() => undefined);
          return answer;
        },
        release: async (claim, options) => {
          gone.add(claim.owner);
          return inner.release(claim, options);
        },
      };
    },
  ),

  mutant(
    'a waiter that gave up stays in the queue',
    at('waiting', 'zk-timeout-node-left: a waiter that timed out or was aborted leaves no entry'),
    (inner) => ({
      release: async (claim, options) => {
        const { owner } = await inner.inspect(claim.name);
        return owner === claim.owner && inner.release(claim, options);
      },
    }),
  ),

  mutant(
    'a try that was refused stays in the queue',
    at('waiting', 'zk-nonblocking-cleanup: a try that was refused leaves no entry'),
    (inner) => ({ attempt: (claim) => inner.attempt({ ...claim, queue: true }) }),
  ),

  mutant(
    'a late attempt overtakes the release that cleans it up',
    at('the seam', 'a late attempt of a claim that was released leaves nothing'),
    (inner) => ({
      attempt: async (claim) => {
        await turn();
        return inner.attempt(claim);
      },
    }),
  ),

  mutant(
    'force ignores the expected token',
    at('force-release', 'with an expected token only that grant is broken'),
    (inner) => ({ forceRelease: (name) => inner.forceRelease(name) }),
  ),

  conspiracy(
    'force empties the queue',
    at('force-release', 'the queue stays, and its head is granted'),
    () => new Map<string, Claim>(),
    (inner, queued) => ({
      attempt: (claim) => {
        if (claim.queue) queued.set(claim.owner, claim);
        return inner.attempt(claim);
      },
      forceRelease: async (name, expected) => {
        const { waiters } = await inner.inspect(name);
        for (const { owner } of waiters) {
          const claim = queued.get(owner);
          if (claim !== undefined) await inner.release(claim);
        }
        return inner.forceRelease(name, expected);
      },
    }),
  ),

  conspiracy(
    'an adoption leaves the hold to its old owner too',
    at('adoption', 'of two adopters one gets the hold and the other LockLostError'),
    () => new Map<string, string>(),
    (inner, former) => {
      const truly = (claim: Claim): Claim => ({ ...claim, owner: former.get(claim.owner) ?? claim.owner });
      return {
        adopt: async (grant, newOwner) => {
          former.set(newOwner, truly(grant.claim).owner);
          return { ...grant, claim: { ...grant.claim, owner: newOwner } };
        },
        renew: (grants) => inner.renew(grants.map((grant) => ({ ...grant, claim: truly(grant.claim) }))),
        release: (claim, options) => inner.release(truly(claim), options),
      };
    },
  ),

  mutant(
    'an adoption mints a token',
    at('adoption', 'a serialized hold is continued by its adopter, with the same token and a new owner'),
    (inner) => ({
      adopt: async (grant, newOwner) => {
        const adopted = await inner.adopt(grant, newOwner);
        return adopted === undefined ? undefined : { ...adopted, fencingToken: adopted.fencingToken + 1n };
      },
    }),
  ),

  mutant(
    'minHold leaves no tail',
    at(
      'min and max hold',
      'minHold: release() is true and leaves a tail: held, without owner, granted to nobody',
    ),
    (inner) => ({ release: (claim) => inner.release(claim) }),
  ),

  mutant(
    'close() leaves a timer',
    at('close', 'after close() no timer is left, whatever was going on'),
    (inner) => ({
      open: async (host) => {
        host?.clock.setTimer(3_600_000, () => undefined);
        return inner.open(host);
      },
    }),
  ),

  mutant('names are folded as a collation does', NAMES, (inner) =>
    rename(inner, (name) => name.normalize('NFC').toLowerCase().trimEnd() || name),
  ),

  mutant('names are cut', NAMES, (inner) => rename(inner, (name) => name.slice(0, 255))),

  {
    name: 'tenants of one server meet',
    caughtBy: at('exclusion', 'other prefixes do not matter'),
    breed: () => {
      let first: LockBackend | undefined;
      return (inner) => {
        first ??= inner;
        const { prefix } = inner;
        const shared = override(first, { close: async () => undefined });
        return prefix === undefined ? shared : override(shared, { prefix });
      };
    },
  },

  mutant(
    'a list has a name twice',
    at('inspect', 'list() yields the names held or waited for, each once, in every shard'),
    (inner) => ({
      list: async function* (prefix) {
        for await (const state of inner.list(prefix)) {
          yield state;
          yield state;
        }
      },
    }),
  ),

  mutant(
    'a list takes the prefix for a pattern',
    at('inspect', 'list() by prefix yields the names that start so, byte for byte'),
    (inner) => ({
      list: async function* (prefix = '') {
        const pattern = new RegExp(
          `^${prefix.replaceAll('*', '.*').replaceAll('%', '.*').replaceAll('_', '.')}`,
          'i',
        );
        for await (const state of inner.list()) if (pattern.test(state.name)) yield state;
      },
    }),
  ),

  mutant('verify() asks nobody', at('inspect', 'verify() asks the backend'), () => ({
    verify: async () => true,
  })),
];

/**
 * Each breaks one promise of the memory backend, as a real backend might; the suite must notice each.
 * `HOLDFAST_MUTANTS` chooses those whose names contain it.
 */
export const MUTANTS: readonly Mutant[] = ALL.filter(({ name }) =>
  name.includes(process.env.HOLDFAST_MUTANTS ?? ''),
);

/** The name under which the unbroken backend plays the same cases. */
export const CONTROL = 'nothing is broken';
