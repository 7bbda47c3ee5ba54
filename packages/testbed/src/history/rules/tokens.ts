import type { Acquisition, Hold, RegisterWrite, Story } from '../story.js';
import { byName, type Finding, lowerBound, type Promises, short, type Violation } from './rule.js';

/** A token, and the span of time in which it was minted. */
interface Minting {
  readonly name: string;
  readonly token: bigint;
  readonly after: number;
  readonly before: number;
  readonly who: string;
  readonly hold?: Hold;
}

/**
 * Decision 1: the tokens of a name are unique and rise in the real-time order of its grants.
 *
 * A grant happened somewhere between its call and its answer, so two grants are ordered when one was answered before
 * the other was asked for. Where exclusion is promised they are also ordered when one was seen held before the other
 * was: the later one's grant cannot lie before a moment at which the earlier one was valid.
 *
 * A token may have been minted by an acquisition of which nothing more was heard: one that a register saw counts, if
 * such an acquisition can have been given it. Gaps between tokens are no evidence of anything.
 */
export function tokens(story: Story, promises: Promises): Finding {
  const violations: Violation[] = [];
  const unheard = byName(
    story.acquisitions.filter(({ outcome }) => outcome === 'open' || outcome === 'unknown'),
  );
  const writes = byName(story.registerWrites);
  const holds = byName(story.holds);
  let checked = 0;

  for (const name of new Set([...holds.keys(), ...writes.keys()])) {
    const granted = (holds.get(name) ?? []).map(mintingOf);
    const orphans = orphanTokens(writes.get(name) ?? [], new Set(granted.map(({ token }) => token)));
    const attributed = attribute(name, orphans, granted, unheard.get(name) ?? []);
    const mintings = [...granted, ...attributed.mintings];
    checked += mintings.length;
    violations.push(...attributed.violations, ...repeated(mintings));
    const falling = notRisingByAnswer(mintings);
    violations.push(...falling.values());
    if (promises.exclusion === 'promised') {
      for (const [minting, violation] of notRisingByHolding(granted)) {
        if (!falling.has(minting)) violations.push(violation);
      }
    }
  }
  return { checked, violations, doubts: [], counts: { grants: story.holds.length } };
}

function mintingOf(hold: Hold): Minting {
  return {
    name: hold.name,
    token: hold.token,
    after: hold.acquisition.invokedAt,
    before: hold.acquisition.endedAt,
    who: `${hold.process} (${short(hold.owner)})`,
    hold,
  };
}

/** Tokens that a register saw and no answered acquisition reported, with the first write that shows each. */
function orphanTokens(
  writes: readonly RegisterWrite[],
  known: ReadonlySet<bigint>,
): Map<bigint, RegisterWrite> {
  const orphans = new Map<bigint, RegisterWrite>();
  for (const write of writes) {
    const token = BigInt(write.token);
    if (!known.has(token) && !orphans.has(token)) orphans.set(token, write);
  }
  return orphans;
}

/**
 * Finds for each orphan an unheard acquisition of its writer that can have been given it. An acquisition can when it
 * was asked for before the write, and before any grant with a higher token was answered. So what an orphan accepts is
 * everything up to a moment; taking the orphans by that moment, each the earliest acquisition left, misses nothing.
 */
function attribute(
  name: string,
  orphans: ReadonlyMap<bigint, RegisterWrite>,
  granted: readonly Minting[],
  unheard: readonly Acquisition[],
): { mintings: Minting[]; violations: Violation[] } {
  const mintings: Minting[] = [];
  const violations: Violation[] = [];
  const free = new Map<string, Acquisition[]>();
  for (const acquisition of [...unheard].sort((a, b) => a.invokedAt - b.invokedAt)) {
    free.set(acquisition.process, [...(free.get(acquisition.process) ?? []), acquisition]);
  }
  const wanted = [...orphans].map(([token, write]) => {
    const higher = granted.filter((minting) => minting.token > token).map(({ before }) => before);
    return { token, write, latest: Math.min(write.at, ...higher) };
  });
  for (const { token, write, latest } of wanted.sort((a, b) => a.latest - b.latest)) {
    const candidates = free.get(write.writer) ?? [];
    const [first] = candidates;
    if (first === undefined || first.invokedAt > latest) {
      violations.push({
        rule: 'tokens',
        kind: 'token-from-nowhere',
        name,
        at: write.at,
        message: `${write.writer} wrote ${name} with token ${token}, which no acquisition of it can have been given`,
      });
      continue;
    }
    candidates.shift();
    mintings.push({
      name,
      token,
      after: first.invokedAt,
      before: write.at,
      who: `${write.writer} (no answer heard)`,
    });
  }
  return { mintings, violations };
}

function repeated(mintings: readonly Minting[]): Violation[] {
  const seen = new Map<bigint, Minting>();
  const violations: Violation[] = [];
  for (const minting of mintings) {
    const earlier = seen.get(minting.token);
    if (earlier === undefined) seen.set(minting.token, minting);
    else {
      violations.push({
        rule: 'tokens',
        kind: 'token-repeated',
        name: minting.name,
        at: minting.before,
        message: `${minting.name}: token ${minting.token} was given to ${earlier.who} and to ${minting.who}`,
      });
    }
  }
  return violations;
}

/** Grants that were asked for after a grant with a higher token had been answered. */
function notRisingByAnswer(mintings: readonly Minting[]): Map<Minting, Violation> {
  const answered = [...mintings].sort((a, b) => a.before - b.before);
  const highest: Minting[] = [];
  for (const minting of answered) {
    const last = highest.at(-1);
    highest.push(last !== undefined && last.token > minting.token ? last : minting);
  }
  const violations = new Map<Minting, Violation>();
  for (const minting of mintings) {
    const before = highest[lowerBound(answered, minting.after, (item) => item.before) - 1];
    if (before !== undefined && before.token > minting.token) violations.set(minting, falls(before, minting));
  }
  return violations;
}

/** Grants that were first seen held after one with a higher token had been seen held. */
function notRisingByHolding(mintings: readonly Minting[]): Map<Minting, Violation> {
  const held = mintings.flatMap((minting) => {
    const claim = minting.hold?.claims[0];
    return claim === undefined ? [] : [{ minting, since: claim.from }];
  });
  const violations = new Map<Minting, Violation>();
  let highest: Minting | undefined;
  for (const { minting } of held.sort((a, b) => a.since - b.since)) {
    if (highest !== undefined && highest.token > minting.token)
      violations.set(minting, falls(highest, minting));
    else highest = minting;
  }
  return violations;
}

function falls(before: Minting, minting: Minting): Violation {
  return {
    rule: 'tokens',
    kind: 'token-not-rising',
    name: minting.name,
    at: minting.before,
    message: `${minting.name}: ${minting.who} was given token ${minting.token} after ${before.who} had been given ${before.token}`,
  };
}
