import {
  BackendError,
  type BackendHost,
  type Capabilities,
  type Claim,
  type Contended,
  type Diagnosis,
  type Grant,
  type LockBackend,
  type LockState,
  OwnerMap,
  type Renewal,
} from '@holdfast/core';
import { diagnose } from '../diagnose.js';
import { toBackendError } from '../errors.js';
import { ALONE, TOMBSTONE } from '../host.js';
import { type Keys, Keyspace } from '../keys.js';
import { DEFAULT_PREFIX, type SingleTopology } from '../options.js';
import { listNames } from '../scan.js';
import * as scripts from '../scripts.generated.js';
import { Crowd } from './crowd.js';
import { DEFAULT_MAX_TTL, type RedisQuorumOptions, serversOf } from './options.js';
import { count, poll, type Tally } from './poll.js';
import { Server } from './server.js';

/** More than any claim has attempts: the tombstone of a claim that is over altogether. */
const ALL_ATTEMPTS = 1_000_000_000;

/** How often a token is raised in one attempt before it is given up: each time somebody else's grant came between. */
const RAISES = 8;

const PING_PERIOD = 2000;

/** What this instance remembers of a claim, from its first attempt to its release. */
interface Candidacy {
  /** The number of the present attempt. */
  attempt: number;
  /** The attempt under way: asked again, it is waited for. */
  running: Promise<Grant | Contended> | undefined;
  grant: Grant | undefined;
  /** Until when the grant is valid for certain. */
  validUntil: number;
  /** The claim was released. */
  over: boolean;
  /** Servers that have given the claim back. */
  readonly freed: Set<number>;
  /** Servers at which a request of the claim may still be under way. */
  readonly unsettled: Set<number>;
}

type Vote =
  | { readonly kind: 'granted'; readonly fence: bigint }
  | { readonly kind: 'held'; readonly by: Holder };

interface Holder {
  readonly owner: string;
  readonly since: number;
  readonly left: number;
}

interface Copy {
  readonly owner: string;
  readonly token: string;
  readonly since: number;
  readonly left: number;
  readonly metadata: string;
}

/**
 * Locks on N independent servers: Redlock (antirez, "Distributed locks with Redis") with the fencing token that its
 * critics asked for (M. Kleppmann, "How to do distributed locking").
 *
 * **Why tokens rise.** A handle with token T is returned only after a majority of servers, all still holding this very
 * attempt's lock, have answered that their counter is exactly T. The next holder needs a majority too; the two share a
 * server, whose counter is at least T, so its vote is at least T + 1, and the next holder's token is the highest of its
 * votes. A counter may fall only with a restart; then the server keeps out of votes for the longest ttl, and its clock,
 * which is part of every vote, is past the tokens that it has forgotten (servers' clocks in step within that time).
 *
 * **Why intervals do not meet.** Validity counts from before the first request of the attempt, and each server keeps
 * its vote for the ttl from when it received it, which is later. A renewal counts once a majority has answered
 * 'extended'. A server that forgot its vote at a restart keeps out until every vote of before has lapsed.
 */
export class RedisQuorumBackend implements LockBackend {
  readonly name = 'redis-quorum';
  readonly prefix: string;
  readonly #topologies: readonly SingleTopology[];
  readonly #keyspaces: readonly Keyspace[];
  readonly #majority: number;
  readonly #maxTtl: number;
  readonly #restartGrace: number;
  readonly #serverTimeout: number | undefined;
  readonly #candidacies = new OwnerMap<Candidacy>();
  /** Waiters by the channel of their name. */
  readonly #crowds = new Map<string, Crowd>();
  /** Channels that are listened to. */
  readonly #listening = new Set<string>();
  #host = ALONE;
  #servers: readonly Server[] = [];
  #ping: { cancel(): void } | undefined;

  constructor(options: RedisQuorumOptions) {
    this.#topologies = serversOf(options);
    this.#majority = Math.floor(this.#topologies.length / 2) + 1;
    this.prefix = options.prefix ?? DEFAULT_PREFIX;
    this.#keyspaces = this.#topologies.map(({ keyPrefix }) => new Keyspace(this.prefix, keyPrefix));
    this.#maxTtl = options.maxTtl ?? DEFAULT_MAX_TTL;
    this.#restartGrace = options.restartGrace ?? this.#maxTtl;
    this.#serverTimeout = options.serverTimeout;
  }

  async open(host: BackendHost = ALONE): Promise<Capabilities> {
    this.#host = host;
    const patience = this.#serverTimeout ?? Math.max(1, host.commandTimeout / 2);
    this.#servers = this.#topologies.map(
      (topology) =>
        new Server({
          topology,
          host,
          patience,
          restartGrace: this.#restartGrace,
          onMessage: (channel) => this.#crowds.get(channel)?.hear(),
          onSubscribed: () => {
            for (const crowd of this.#crowds.values()) crowd.hear();
          },
        }),
    );
    const limit = host.commandTimeout * 2;
    await poll(
      this.#servers.map((server) => server.open(limit)),
      (tally) => this.#atLeastMajority(tally, 'could be reached'),
    );
    return {
      fairness: 'none',
      wake: 'push',
      expiry: 'server-ttl',
      consistency: 'quorum',
      crossProcess: true,
      transferable: true,
      minHold: 'server',
      grace: 1000,
      ttl: { min: 50, max: this.#maxTtl, granularity: 1 },
    };
  }

  attempt(claim: Claim): Promise<Grant | Contended> {
    const candidacy = this.#candidacyOf(claim.owner);
    if (claim.queue) this.#crowdOf(claim.name).enter(claim.owner);
    if (candidacy.grant !== undefined) return this.#again(claim, candidacy, candidacy.grant);
    candidacy.running ??= this.#attempt(claim, candidacy).finally(() => {
      candidacy.running = undefined;
    });
    return candidacy.running;
  }

  async awaitTurn(claim: Claim, contended: Contended, signal: AbortSignal): Promise<void> {
    const channel = this.#channelOf(claim.name);
    const crowd = this.#crowds.get(channel);
    if (crowd === undefined) return;
    // The first time, listening begins here; what was missed until then shows at the attempt that follows.
    if (await this.#listen(channel)) return;
    await crowd.turn(claim.owner, contended, signal);
  }

  renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    return Promise.all(grants.map((grant) => this.#renew(grant, grant.ttl)));
  }

  extend(grant: Grant, ttl: number): Promise<Renewal> {
    return this.#renew(grant, ttl);
  }

  async release(claim: Claim, { keepFor = 0 }: { readonly keepFor?: number } = {}): Promise<boolean> {
    const { name, owner } = claim;
    this.#leave(claim);
    const candidacy = this.#candidacyOf(owner);
    // Loss is final: no renewal or repair of this claim is sent from here on, and an attempt under way comes to nothing.
    candidacy.over = true;
    candidacy.grant = undefined;
    candidacy.validUntil = 0;
    const channel = this.#channelOf(name);
    const answers = this.#servers.map((server, index) => {
      if (candidacy.freed.has(index)) return Promise.resolve(1);
      const send = () => this.#end(index, claim, ALL_ATTEMPTS, Math.ceil(keepFor), channel, candidacy);
      return server.settle(owner, claim.ttl, send).then((freed) => {
        if (freed === 1) candidacy.freed.add(index);
        return freed;
      });
    });
    const freed = await poll(answers, (tally) => {
      const yes = count(tally, (answer) => answer === 1);
      if (yes >= this.#majority) return true;
      if (tally.answers.size - yes > this.#topologies.length - this.#majority) return false;
      if (tally.open > 0) return undefined;
      // Those that freed it were part of its majority, of which others are away.
      return this.#atLeastMajority(tally, 'answered to the release', name) && yes > 0;
    });
    this.#candidacies.delete(owner);
    return freed;
  }

  letLapse({ owner }: Claim): void {
    this.#candidacies.delete(owner);
  }

  async adopt(grant: Grant, newOwner: string): Promise<Grant | undefined> {
    const { claim, fencingToken, ttl } = grant;
    const from = this.#host.clock.now();
    const args = [claim.owner, newOwner, String(fencingToken), ttl];
    const ask = (index: number) => this.#run(index, claim.name, scripts.quorumAdopt, ['lock', 'fence'], args);
    // Two adopters must not get a minority each: the first server that has the grant decides between them.
    const asked = new Map<number, Promise<unknown>>();
    for (const [index, server] of this.#servers.entries()) {
      // One that is away decides nothing now, and waiting for it would take the time of the others.
      if (!server.link.isReady) continue;
      const answer = ask(index);
      asked.set(index, answer);
      const said = await answer.catch(() => 'silent');
      if (said === 'taken') return undefined;
      if (said === 'mine') break;
    }
    for (const index of this.#servers.keys()) if (!asked.has(index)) asked.set(index, ask(index));
    const adopted = await poll([...asked.values()], (tally) =>
      this.#verdict(tally, (said) => said === 'mine', claim.name),
    );
    if (!adopted) return undefined;
    const mine: Grant = { claim: { ...claim, owner: newOwner }, fencingToken, ttl, from };
    const candidacy = this.#candidacyOf(newOwner);
    candidacy.grant = mine;
    candidacy.validUntil = validity(from, ttl);
    return mine;
  }

  inspect(name: string): Promise<LockState> {
    return this.#stateOf(name, (tally) => this.#tooFew(tally, 'agreed on what they have', name));
  }

  async *list(prefix = ''): AsyncIterable<LockState> {
    const met = new Set<string>();
    const failures: unknown[] = [];
    for (const index of this.#servers.keys()) {
      for await (const names of this.#namesAt(index, prefix, failures)) {
        const fresh = names.filter((name) => !met.has(name));
        for (const name of fresh) met.add(name);
        // What may be held is worth showing, where servers that are away would have to say whether it is.
        const states = await Promise.all(
          fresh.map((name) => this.#stateOf(name, (_, likeliest) => likeliest)),
        );
        yield* states.filter((state) => state.held);
      }
    }
  }

  /** What a majority has, each majority of the servers shows: some of them may be away. */
  async *#namesAt(index: number, prefix: string, failures: unknown[]): AsyncIterable<readonly string[]> {
    try {
      yield* listNames([this.#serverAt(index).link], this.#keyspaceOf(index), prefix);
    } catch (error) {
      failures.push(error);
      if (failures.length > this.#topologies.length - this.#majority) throw toBackendError(error);
    }
  }

  /**
   * The state that a majority agrees on.
   *
   * @param decide what to make of answers of a majority that do not agree, where those that are away may tip the scales
   */
  async #stateOf(
    name: string,
    decide: (tally: Tally<Copy | undefined>, likeliest: Copy) => Copy,
  ): Promise<LockState> {
    const answers = this.#servers.map(async (_, index) => {
      const reply = await this.#run(index, name, scripts.quorumInspect, ['lock'], []);
      return reply === null ? undefined : copyFrom(reply);
    });
    const agreed = await poll(answers, (tally) => this.#agreement(tally, name, decide));
    if (agreed === 'free') return { name, held: false, waiters: [] };
    const { owner, token, since, left, metadata } = agreed;
    return {
      name,
      held: true,
      ...(owner === '' ? {} : { owner }),
      fencingToken: BigInt(token),
      acquiredAt: new Date(since),
      expiresIn: Math.max(0, left),
      ...(metadata === '' ? {} : { metadata }),
      // Nobody keeps an order of those that wait.
      waiters: [],
    };
  }

  async forceRelease(name: string, expected?: bigint): Promise<boolean> {
    const args = [`${expected ?? ''}`, this.#channelOf(name)];
    const answers = this.#servers.map((_, index) =>
      this.#run(index, name, scripts.quorumForce, ['lock', 'forced'], args),
    );
    return poll(answers, (tally) => this.#verdict(tally, (answer) => answer === 1, name));
  }

  async wasForced(name: string, token: bigint): Promise<boolean> {
    const answers = this.#servers.map((_, index) => this.#run(index, name, scripts.peek, ['forced'], []));
    return poll(answers, (tally) => {
      if (count(tally, (forced) => forced === String(token)) > 0) return true;
      return tally.open > 0 ? undefined : false;
    });
  }

  async close(): Promise<void> {
    this.#ping?.cancel();
    for (const crowd of this.#crowds.values()) crowd.close();
    for (const server of this.#servers) server.close();
  }

  async diagnose(): Promise<readonly Diagnosis[]> {
    const options = { clock: this.#host.clock, minReplicas: 0 };
    const facts = await Promise.all(
      this.#servers.map(({ link }) =>
        diagnose([link], options).catch((error: unknown): Diagnosis[] => [
          { level: 'danger', id: 'redis-quorum-server', finding: toBackendError(error).message },
        ]),
      ),
    );
    const servers = this.#servers.length;
    return [
      {
        level: servers % 2 === 0 ? 'warning' : 'ok',
        id: 'redis-quorum-size',
        finding: `${servers} servers, of which ${servers - this.#majority} may be away`,
        ...(servers % 2 === 0
          ? { advice: 'an odd number survives as many failures with one server less' }
          : {}),
      },
      ...facts.flat(),
    ];
  }

  /** One attempt: votes, then the token, then a grant; or everything undone, also where the answer never came. */
  async #attempt(claim: Claim, candidacy: Candidacy): Promise<Grant | Contended> {
    const { name, ttl, metadata = '' } = claim;
    const attempt = ++candidacy.attempt;
    const from = this.#host.clock.now();
    const votes = this.#servers.map((_, index) => this.#vote(index, claim, attempt, metadata, candidacy));
    let outcome: bigint | undefined;
    try {
      const result = await poll(votes, (tally) => this.#elected(tally, name));
      if (result.kind === 'contended') {
        // Nobody will release a claim that was only tried.
        if (!claim.queue) this.#candidacies.delete(claim.owner);
        return result.contended;
      }
      const token = await this.#confirm(claim, attempt, result.granted);
      if (candidacy.over) return {};
      if (this.#host.clock.now() >= validity(from, ttl)) {
        throw new BackendError(
          'BACKEND_UNAVAILABLE',
          `a majority for lock ${JSON.stringify(name)} took longer than its ttl of ${ttl} ms; use a longer ttl`,
          { lockName: name },
        );
      }
      outcome = token;
      const grant: Grant = { claim, fencingToken: token, ttl, from, validFor: ttl };
      candidacy.grant = grant;
      candidacy.validUntil = validity(from, ttl);
      this.#leave(claim);
      return grant;
    } catch (error) {
      if (candidacy.over) return {};
      throw error;
    } finally {
      this.#afterwards(claim, attempt, votes, candidacy, outcome);
    }
  }

  /** The same owner asks again: the same grant, with new time. */
  async #again({ ttl }: Claim, candidacy: Candidacy, grant: Grant): Promise<Grant | Contended> {
    const from = this.#host.clock.now();
    const renewal = await this.#renew(grant, ttl);
    if (renewal.renewed === true) return { ...grant, ttl, from };
    if (renewal.renewed === 'unknown') throw renewal.error;
    candidacy.grant = undefined;
    return {};
  }

  async #vote(
    index: number,
    { name, owner, ttl }: Claim,
    attempt: number,
    metadata: string,
    candidacy: Candidacy,
  ): Promise<Vote> {
    const keyspace = this.#keyspaceOf(index);
    const { lock, fence } = keyspace.keys(name);
    candidacy.unsettled.add(index);
    const keys = [lock, fence, tombstone(lock, owner)];
    const args = [owner, attempt, ttl, metadata];
    if (this.#restartGrace > 0) {
      keys.push(keyspace.born);
      args.push(this.#restartGrace);
    }
    const reply = await this.#serverAt(index)
      .vote(scripts.quorumAcquire, keys, args)
      .catch((error: unknown) => {
        throw toBackendError(error, { lockName: name });
      });
    candidacy.unsettled.delete(index);
    if (typeof reply === 'string') return { kind: 'granted', fence: BigInt(reply) };
    if (typeof reply === 'number') throw this.#serverAt(index).keepsOut(reply);
    const [holder, since, left] = reply as [string, string, number];
    return { kind: 'held', by: { owner: holder, since: Number(since), left } };
  }

  /** Decides as soon as the votes do. Contended: enough servers have answered, and others have too many of them. */
  #elected(
    tally: Tally<Vote>,
    name: string,
  ):
    | { readonly kind: 'granted'; readonly granted: ReadonlyMap<number, bigint> }
    | { readonly kind: 'contended'; readonly contended: Contended }
    | undefined {
    const granted = new Map<number, bigint>();
    const held: Holder[] = [];
    for (const [index, vote] of tally.answers) {
      if (vote.kind === 'granted') granted.set(index, vote.fence);
      else held.push(vote.by);
    }
    if (granted.size >= this.#majority) return { kind: 'granted', granted };
    if (granted.size + tally.open >= this.#majority) return undefined;
    if (granted.size + held.length >= this.#majority) {
      return { kind: 'contended', contended: this.#contended(held) };
    }
    return this.#tooFew(tally, 'voted', name);
  }

  /** A holder (or a tail) has a majority, and a time to come back at; votes split between contenders have neither. */
  #contended(held: readonly Holder[]): Contended {
    for (const { owner, since } of held) {
      const same = held.filter((other) => other.owner === owner);
      if (same.length < this.#majority) continue;
      const left = same.map((each) => each.left).sort((a, b) => a - b);
      return {
        ...(owner === '' ? {} : { holder: { owner, since: new Date(since) } }),
        retryAfter: left[this.#majority - 1] ?? 0,
      };
    }
    return {};
  }

  /**
   * Writes the highest token back until a majority has exactly that. An acknowledgement belongs to one token: raised,
   * all of them are asked again.
   */
  async #confirm(claim: Claim, attempt: number, granted: ReadonlyMap<number, bigint>): Promise<bigint> {
    let token = highest(granted.values());
    for (let raises = 0; raises < RAISES; raises++) {
      const wanted = token;
      const args = [claim.owner, attempt, String(wanted)];
      const answers = [...granted.keys()].map(async (index) => {
        const fence = await this.#run(index, claim.name, scripts.quorumConfirm, ['lock', 'fence'], args);
        // Nothing where the lock is no longer this attempt's.
        return typeof fence === 'string' ? BigInt(fence) : 0n;
      });
      const next = await poll(answers, (tally) => {
        if (count(tally, (fence) => fence === wanted) >= this.#majority) return wanted;
        const seen = highest(tally.answers.values());
        if (seen > wanted) return seen;
        return tally.open > 0 ? undefined : this.#tooFew(tally, 'confirmed the token', claim.name);
      });
      if (next === token) return token;
      token = next;
    }
    throw new BackendError(
      'BACKEND_UNAVAILABLE',
      `the token of lock ${JSON.stringify(claim.name)} was overtaken again and again`,
      { lockName: claim.name },
    );
  }

  /** Votes that come in after the decision, and those of an attempt that failed. */
  #afterwards(
    claim: Claim,
    attempt: number,
    votes: readonly Promise<Vote>[],
    candidacy: Candidacy,
    token: bigint | undefined,
  ): void {
    for (const [index, vote] of votes.entries()) {
      vote
        .then(
          ({ kind }) => {
            if (kind !== 'granted') return;
            if (token === undefined) return this.#undo(index, claim, attempt, candidacy);
            // A late vote is the holder's as well; its renewal asks for the token.
            if (candidacy.grant?.fencingToken !== token) return;
            const args = [claim.owner, attempt, String(token)];
            return this.#run(index, claim.name, scripts.quorumConfirm, ['lock', 'fence'], args);
          },
          () => (token === undefined ? this.#undo(index, claim, attempt, candidacy) : undefined),
        )
        .catch(() => undefined);
    }
  }

  #undo(index: number, claim: Claim, attempt: number, candidacy: Candidacy): Promise<unknown> {
    const send = () => this.#end(index, claim, attempt, 0, '', candidacy);
    return this.#serverAt(index).settle(claim.owner, claim.ttl, send);
  }

  /** Ends the claim's attempts up to a number at one server. */
  async #end(
    index: number,
    { name, owner }: Claim,
    attempt: number,
    keepFor: number,
    channel: string,
    candidacy: Candidacy,
  ): Promise<unknown> {
    const { lock } = this.#keyspaceOf(index).keys(name);
    const keys = [lock];
    if (candidacy.unsettled.has(index)) keys.push(tombstone(lock, owner));
    return this.#serverAt(index)
      .run(scripts.quorumRelease, keys, [owner, attempt, keepFor, channel, TOMBSTONE])
      .catch((error: unknown) => {
        throw toBackendError(error, { lockName: name });
      });
  }

  async #renew(grant: Grant, ttl: number): Promise<Renewal> {
    const { claim, fencingToken } = grant;
    const from = this.#host.clock.now();
    const { attempt = 0, grant: present } = this.#candidacies.get(claim.owner) ?? {};
    // The servers would take this token for the news of one whose vote they have not heard of.
    if (present !== undefined && present.fencingToken !== fencingToken) return { renewed: false };
    const args = [claim.owner, attempt, String(fencingToken), ttl];
    const answers = this.#servers.map((_, index) =>
      this.#run(index, claim.name, scripts.quorumRenew, ['lock', 'fence'], args),
    );
    const renewal = await poll(answers, (tally): Renewal | undefined => {
      if (count(tally, (answer) => answer === 'extended') >= this.#majority) return { renewed: true, ttl };
      const no = count(tally, (answer) => answer !== 'extended');
      if (no > this.#topologies.length - this.#majority) return { renewed: false };
      if (tally.open > 0) return undefined;
      const [error = new Error('no majority')] = tally.failures.values();
      return { renewed: 'unknown', error: toBackendError(error, { lockName: claim.name }) };
    });
    if (renewal.renewed === false) return { renewed: false, reason: await this.#whyLost(grant) };
    if (renewal.renewed !== true) return renewal;
    const candidacy = this.#candidacies.get(claim.owner);
    // Released, or out of time, while the answers were under way: then they count no more.
    if (candidacy?.grant === undefined || this.#host.clock.now() >= candidacy.validUntil) return renewal;
    candidacy.validUntil = Math.max(candidacy.validUntil, validity(from, ttl));
    this.#repair(answers, grant, ttl, candidacy);
    return renewal;
  }

  /** Servers that have lost the lock get it back, now that a majority has said that it is still ours. */
  #repair(
    answers: readonly Promise<unknown>[],
    { claim, fencingToken }: Grant,
    ttl: number,
    of: Candidacy,
  ): void {
    const args = [claim.owner, of.attempt, String(fencingToken), ttl, claim.metadata ?? ''];
    for (const [index, answer] of answers.entries()) {
      answer
        .then((said) => {
          if (said !== 'absent' || of.grant === undefined) return undefined;
          if (this.#host.clock.now() >= of.validUntil) return undefined;
          const { lock, fence } = this.#keyspaceOf(index).keys(claim.name);
          of.unsettled.add(index);
          return this.#serverAt(index)
            .run(scripts.quorumRepair, [lock, fence, tombstone(lock, claim.owner)], args)
            .then(() => of.unsettled.delete(index));
        })
        .catch(() => undefined);
    }
  }

  async #whyLost({ claim, fencingToken }: Grant): Promise<'forced' | 'superseded'> {
    return (await this.wasForced(claim.name, fencingToken)) ? 'forced' : 'superseded';
  }

  /** The copy that a majority has; 'free' when there can be none. */
  #agreement(
    tally: Tally<Copy | undefined>,
    name: string,
    decide: (tally: Tally<Copy | undefined>, likeliest: Copy) => Copy,
  ): Copy | 'free' | undefined {
    const copies = [...tally.answers.values()];
    let most = 0;
    let likeliest: Copy | undefined;
    for (const copy of copies) {
      const same = copies.filter((other) => other?.owner === copy?.owner && other?.token === copy?.token);
      if (same.length >= this.#majority) return copy ?? 'free';
      if (copy === undefined || same.length <= most) continue;
      most = same.length;
      likeliest = copy;
    }
    if (most + tally.open + tally.failures.size < this.#majority) return 'free';
    if (tally.open > 0) return undefined;
    this.#atLeastMajority(tally, 'said what they have', name);
    return likeliest === undefined ? 'free' : decide(tally, likeliest);
  }

  /** True once a majority says so, false when none can any more; an error when too few have answered. */
  #verdict(tally: Tally<unknown>, yes: (answer: unknown) => boolean, name: string): boolean | undefined {
    const agreeing = count(tally, yes);
    if (agreeing >= this.#majority) return true;
    if (agreeing + tally.open + tally.failures.size < this.#majority) return false;
    return tally.open > 0 ? undefined : this.#tooFew(tally, 'answered', name);
  }

  /** True once a majority has answered. @throws BackendError when it cannot any more */
  #atLeastMajority(tally: Tally<unknown>, what: string, lockName?: string): true | undefined {
    if (tally.answers.size >= this.#majority) return true;
    if (tally.answers.size + tally.open >= this.#majority) return undefined;
    return this.#tooFew(tally, what, lockName);
  }

  #tooFew(tally: Tally<unknown>, what: string, lockName?: string): never {
    const reasons = [...tally.failures.values()].map((error) => toBackendError(error));
    const [first] = reasons;
    const refused = reasons.length > 0 && reasons.every((reason) => !reason.transient);
    const about = lockName === undefined ? '' : ` (lock ${JSON.stringify(lockName)})`;
    throw new BackendError(
      refused ? 'BACKEND_REFUSED' : 'BACKEND_UNAVAILABLE',
      `too few of ${this.#topologies.length} Redis servers ${what}${about}: ${this.#majority} are needed, ` +
        `${reasons.length} failed${first === undefined ? '' : `: ${first.message}`}`,
      { lockName, cause: first?.cause ?? first, transient: !refused },
    );
  }

  #run(
    index: number,
    name: string,
    script: (typeof scripts)[keyof typeof scripts],
    kinds: readonly (keyof Keys)[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const keys = this.#keyspaceOf(index).keys(name);
    return this.#serverAt(index)
      .run(
        script,
        kinds.map((kind) => keys[kind]),
        args,
      )
      .then(undefined, (error: unknown) => {
        throw toBackendError(error, { lockName: name });
      });
  }

  /** True if this call began to listen. */
  async #listen(channel: string): Promise<boolean> {
    if (this.#listening.has(channel)) return false;
    this.#listening.add(channel);
    this.#ping ??= this.#pingLater();
    const subscribed = this.#servers.map((server) => server.subscribe(channel));
    // One server is enough to be woken by; without any there is the timer.
    await Promise.any(subscribed).catch(() => undefined);
    return true;
  }

  #pingLater(): { cancel(): void } {
    return this.#host.clock.setTimer(PING_PERIOD, () => {
      this.#ping = undefined;
      if (this.#listening.size === 0) return;
      for (const server of this.#servers) server.checkSubscription();
      this.#ping = this.#pingLater();
    });
  }

  #leave({ name, owner }: Claim): void {
    const channel = this.#channelOf(name);
    const crowd = this.#crowds.get(channel);
    if (crowd === undefined) return;
    crowd.leave(owner);
    if (crowd.size > 0) return;
    crowd.close();
    this.#crowds.delete(channel);
    if (!this.#listening.delete(channel)) return;
    for (const server of this.#servers) server.unsubscribe(channel);
  }

  #crowdOf(name: string): Crowd {
    const channel = this.#channelOf(name);
    const present = this.#crowds.get(channel);
    if (present !== undefined) return present;
    const crowd = new Crowd(this.#host.clock);
    this.#crowds.set(channel, crowd);
    return crowd;
  }

  /** Where the servers tell that the name is free. One name for all servers, whatever their clients' prefixes. */
  #channelOf(name: string): string {
    return `${this.prefix}:free:${name}`;
  }

  #candidacyOf(owner: string): Candidacy {
    const present = this.#candidacies.get(owner);
    if (present !== undefined) return present;
    const candidacy: Candidacy = {
      attempt: 0,
      running: undefined,
      grant: undefined,
      validUntil: 0,
      over: false,
      freed: new Set(),
      unsettled: new Set(),
    };
    this.#candidacies.set(owner, candidacy);
    return candidacy;
  }

  #serverAt(index: number): Server {
    const server = this.#servers[index];
    if (server === undefined) throw new Error('open() comes first');
    return server;
  }

  #keyspaceOf(index: number): Keyspace {
    const keyspace = this.#keyspaces[index];
    if (keyspace === undefined) throw new Error(`there is no server ${index}`);
    return keyspace;
  }
}

/** When a validity of `ttl` from `from` ends: 1 % for clock rates, 2 ms for their grain. */
function validity(from: number, ttl: number): number {
  return from + ttl - ttl * 0.01 - 2;
}

function highest(fences: Iterable<bigint>): bigint {
  let most = 0n;
  for (const fence of fences) if (fence > most) most = fence;
  return most;
}

function tombstone(lock: string, owner: string): string {
  return `${lock}:gone:${owner}`;
}

/** { owner, token, held since, ms left, metadata } */
function copyFrom(reply: unknown): Copy {
  const [owner, token, since, left, metadata] = reply as [string, string, string, number, string];
  return { owner, token, since: Number(since), left, metadata };
}
