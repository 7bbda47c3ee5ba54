import { randomBytes } from 'node:crypto';
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
  MAX_DURATION,
  type Renewal,
} from '@holdfast/core';
import type { Candidate } from './candidate.js';
import { Cluster } from './cluster.js';
import { diagnose } from './diagnose.js';
import { isReply, toBackendError } from './errors.js';
import { ALONE, TOMBSTONE } from './host.js';
import { Keyspace } from './keys.js';
import { type Confirmation, Link } from './link.js';
import { LIVENESS, REFRESH_PERIOD } from './liveness.js';
import { DEFAULT_PREFIX, type RedisBackendOptions, type Topology, topologyOf } from './options.js';
import { listNames } from './scan.js';
import type { Script } from './script.js';
import * as scripts from './scripts.generated.js';
import type { Servers } from './servers.js';
import { Single } from './single.js';
import { WaitingRoom } from './waiting-room.js';

/** Renewals sent in one go, so that ten thousand of them do not hold up the event loop. */
const BATCH = 1000;

const DEFAULT_CONFIRMATION_TIMEOUT = 500;

type Arguments = readonly (string | number)[];

/**
 * Locks on one Redis server, on the master that Sentinel names, or on a cluster.
 *
 * The whole protocol is in `scripts/`: a lock is a key that expires, taken, fenced and queued for in one script. The
 * queue follows three ideas: release hands the lock to the head of the queue, for as long as a waiter counts as alive,
 * or wakes it and leaves it there, so that the lock is reserved for it; every waiter gives signs of life, and whoever
 * runs a script first removes those that stopped; messages are hints, so whatever a message would say is also asked for
 * from time to time.
 */
export class RedisBackend implements LockBackend {
  readonly name = 'redis';
  readonly prefix: string;
  readonly #topology: Topology;
  readonly #keyspace: Keyspace;
  readonly #confirmation: Confirmation | undefined;
  /** Where the waiters of this instance are woken. */
  readonly #channel: string;
  #host = ALONE;
  #servers: Servers | undefined;
  #subscription: Link | undefined;
  #room: WaitingRoom | undefined;

  constructor(options: RedisBackendOptions) {
    this.#topology = topologyOf(options);
    this.prefix = options.prefix ?? DEFAULT_PREFIX;
    this.#keyspace = new Keyspace(this.prefix, this.#topology.keyPrefix);
    this.#channel = this.#keyspace.channel(randomBytes(9).toString('base64url'));
    const { minReplicas = 0, minReplicasTimeout = DEFAULT_CONFIRMATION_TIMEOUT } = options;
    if (minReplicas > 0) this.#confirmation = { replicas: minReplicas, timeout: minReplicasTimeout };
  }

  async open(host: BackendHost = ALONE): Promise<Capabilities> {
    this.#host = host;
    const { clock } = host;
    const servers = this.#connect(host);
    this.#servers = servers;
    const room = new WaitingRoom({
      clock,
      placeOf: (claim) => this.#placeOf(claim),
      refresh: (name, members) => this.#refresh(name, members),
      onRound: () => this.#checkSubscription(),
    });
    this.#room = room;
    const subscription = new Link({
      target: `${this.#topology.target} (subscription)`,
      clock,
      patience: Math.min(host.commandTimeout, REFRESH_PERIOD),
      dial: () => {
        const client = servers.dialSubscriber();
        client.on('message', (_channel, message) => room.hear(message));
        return client;
      },
      prepare: (client) => client.subscribe(this.#channel),
      // What was published while nobody listened is lost.
      onReady: () => room.recheck(),
    });
    this.#subscription = subscription;
    // A first connection may take longer than a command.
    const limit = host.commandTimeout * 2;
    try {
      await Promise.all([servers.open(limit), subscription.open(limit)]);
      // A sentinel's port, or a user that may not run scripts, would otherwise show at the first lock only.
      await servers.run(scripts.peek, [this.#keyspace.lock('')], []);
    } catch (error) {
      throw toBackendError(error);
    }
    return {
      fairness: 'fifo',
      wake: 'push',
      expiry: 'server-ttl',
      consistency: servers.replicates ? 'async-replicated' : 'single-node',
      crossProcess: true,
      transferable: true,
      minHold: 'server',
      grace: LIVENESS,
      ttl: { min: 10, max: MAX_DURATION, granularity: 1 },
    };
  }

  attempt(claim: Claim): Promise<Grant | Contended> {
    const { name, owner, ttl, metadata } = claim;
    const room = this.#waiting;
    const candidate = room.enter(claim);
    const keys = this.#keyspace.keys(name);
    const args: (string | number)[] = [owner, ttl, candidate.place];
    if (metadata !== undefined) args.push(metadata);
    const sentAt = this.#host.clock.now();
    candidate.pending++;
    return this.#write(name, scripts.acquire, [keys.lock, keys.fence, keys.queue, keys.alive], args).then(
      (reply) => {
        candidate.pending--;
        if (typeof reply === 'string') {
          this.#granted(candidate);
          return { claim, fencingToken: BigInt(reply), ttl };
        }
        const contended = refusalFrom(name, reply);
        if (claim.queue) room.queued(candidate, contended, sentAt);
        else if (!candidate.unsettled) room.remove(candidate);
        return contended;
      },
      (failure: unknown) => {
        candidate.pending--;
        const error = toBackendError(failure, { lockName: name });
        // A reply is an outcome; without one the attempt may still be executed.
        if (!isReply(error.cause)) candidate.unanswered = true;
        throw error;
      },
    );
  }

  async awaitTurn(claim: Claim, _contended: Contended, signal: AbortSignal): Promise<void> {
    await this.#waiting.find(claim.owner)?.turn(signal);
  }

  async renew(grants: readonly Grant[]): Promise<readonly Renewal[]> {
    const renewals: Renewal[] = [];
    for (let start = 0; start < grants.length; start += BATCH) {
      const batch = grants.slice(start, start + BATCH);
      renewals.push(...(await Promise.all(batch.map((grant) => this.#renew(grant, grant.ttl)))));
    }
    return renewals;
  }

  extend(grant: Grant, ttl: number): Promise<Renewal> {
    return this.#renew(grant, ttl);
  }

  release(claim: Claim, { keepFor = 0 }: { readonly keepFor?: number } = {}): Promise<boolean> {
    const { name, owner } = claim;
    const room = this.#waiting;
    const candidate = room.find(owner);
    if (candidate !== undefined) room.dismiss(candidate);
    const keys = this.#keyspace.keys(name);
    const args: (string | number)[] = [owner, candidate?.place ?? this.#placeOf(claim)];
    if (candidate?.unsettled) args.push(Math.ceil(keepFor), TOMBSTONE);
    else if (keepFor > 0) args.push(Math.ceil(keepFor));
    const lockKeys = [keys.lock, keys.fence, keys.queue, keys.alive];
    return this.#opened.run(scripts.release, lockKeys, args).then(
      (reply) => {
        if (candidate !== undefined) room.remove(candidate);
        return reply === 1;
      },
      (failure: unknown) => {
        throw toBackendError(failure, { lockName: name });
      },
    );
  }

  letLapse({ owner }: Claim): void {
    const candidate = this.#waiting.find(owner);
    if (candidate === undefined) return;
    this.#waiting.dismiss(candidate);
    this.#waiting.remove(candidate);
  }

  async adopt(grant: Grant, newOwner: string): Promise<Grant | undefined> {
    const { claim, fencingToken, ttl } = grant;
    const { lock } = this.#keyspace.keys(claim.name);
    const adopted = { ...claim, owner: newOwner };
    const args = [mark(claim.owner, fencingToken), mark(newOwner, fencingToken), ttl];
    try {
      const reply = await this.#write(claim.name, scripts.adopt, [lock], args);
      return reply === 1 ? { claim: adopted, fencingToken, ttl } : undefined;
    } catch (error) {
      throw toBackendError(error, { lockName: claim.name });
    }
  }

  async inspect(name: string): Promise<LockState> {
    const { lock, queue, alive } = this.#keyspace.keys(name);
    return stateFrom(name, await this.#run(name, scripts.inspect, [lock, queue, alive], []));
  }

  async *list(prefix = ''): AsyncIterable<LockState> {
    try {
      for await (const names of listNames(await this.#opened.masters(), this.#keyspace, prefix)) {
        const states = await Promise.all(names.map((name) => this.inspect(name)));
        // A queue outlives its last waiter for a moment, and so may its name here.
        yield* states.filter((state) => state.held || state.waiters.length > 0);
      }
    } catch (error) {
      throw toBackendError(error);
    }
  }

  async forceRelease(name: string, expected?: bigint): Promise<boolean> {
    const { lock, forced, queue, alive } = this.#keyspace.keys(name);
    const keys = [lock, forced, queue, alive];
    return (await this.#run(name, scripts.force, keys, [`${expected ?? ''}`])) === 1;
  }

  async wasForced(name: string, token: bigint): Promise<boolean> {
    const { forced } = this.#keyspace.keys(name);
    return (await this.#run(name, scripts.peek, [forced], [])) === String(token);
  }

  async close(): Promise<void> {
    this.#room?.close();
    this.#subscription?.close();
    this.#servers?.close();
  }

  async diagnose(): Promise<readonly Diagnosis[]> {
    const masters = await this.#opened.masters();
    return diagnose(masters, {
      clock: this.#host.clock,
      minReplicas: this.#confirmation?.replicas ?? 0,
    });
  }

  #granted(candidate: Candidate): void {
    this.#waiting.dismiss(candidate);
    // An attempt before this one may still be under way: the release will have to say so.
    if (!candidate.unsettled) this.#waiting.remove(candidate);
  }

  /**
   * How a claim stands in the queue: '' not at all, '+' where it may be handed the lock for as long as a waiter
   * counts as alive, '-' where it has to ask for it: for a life that is shorter than that, for a text that the releasing
   * script does not know, for replicas that must confirm.
   */
  #placeOf({ queue, ttl, metadata }: Claim): string {
    if (!queue) return '';
    const handable = ttl >= LIVENESS && metadata === undefined && this.#confirmation === undefined;
    return `${handable ? '+' : '-'}${this.#channel}`;
  }

  #connect({ clock, commandTimeout }: BackendHost): Servers {
    const host = {
      clock,
      patience: commandTimeout,
      onDown: () => undefined,
      // Whatever our waiters missed meanwhile shows at the next sign of life, which is late already.
      onReady: () => this.#room?.recheck(),
    };
    return this.#topology.kind === 'cluster'
      ? new Cluster(this.#topology, host)
      : new Single(this.#topology, host);
  }

  async #renew(grant: Grant, ttl: number): Promise<Renewal> {
    const { name, owner } = grant.claim;
    const { lock, forced } = this.#keyspace.keys(name);
    try {
      const reply = await this.#write(name, scripts.renew, [lock], [mark(owner, grant.fencingToken), ttl]);
      if (reply === 1) return { renewed: true, ttl };
      const broken = await this.#opened.run(scripts.peek, [forced], []);
      return { renewed: false, reason: broken === String(grant.fencingToken) ? 'forced' : 'superseded' };
    } catch (error) {
      return { renewed: 'unknown', error: toBackendError(error, { lockName: name }) };
    }
  }

  async #refresh(name: string, members: readonly string[]) {
    const { lock, fence, queue, alive } = this.#keyspace.keys(name);
    // Unanswered for a whole period, the connection is not worth waiting for: a new one may still keep the places.
    const impatient = this.#host.clock.setTimer(REFRESH_PERIOD, () =>
      this.#opened.linkOf(lock).suspect(REFRESH_PERIOD),
    );
    try {
      const reply = await this.#run(name, scripts.refresh, [lock, fence, queue, alive], members);
      const [head, left, ...gone] = reply as [string, number, ...string[]];
      return { head, left, gone };
    } finally {
      impatient.cancel();
    }
  }

  /** A subscription that has silently died would cost every waiter its messages. */
  #checkSubscription(): void {
    // Unanswered, it makes the link dial again; that is all that is wanted of it.
    this.#subscription?.call('ping', []).catch(() => undefined);
  }

  /**
   * Runs a script whose effect a client will rely on: with `minReplicas` it counts once enough replicas have it. Rejects
   * with what the client says.
   */
  #write(name: string, script: Script, keys: readonly string[], args: Arguments): Promise<unknown> {
    const confirmation = this.#confirmation;
    if (confirmation === undefined) return this.#opened.run(script, keys, args);
    return this.#opened.runConfirmed(script, keys, args, confirmation).then(({ reply, replicas }) => {
      if (replicas >= confirmation.replicas) return reply;
      throw unconfirmed(name, replicas, confirmation);
    });
  }

  #run(name: string, script: Script, keys: readonly string[], args: Arguments): Promise<unknown> {
    return this.#opened.run(script, keys, args).then(undefined, (error: unknown) => {
      throw toBackendError(error, { lockName: name });
    });
  }

  get #opened(): Servers {
    if (this.#servers === undefined) throw new Error('open() comes first');
    return this.#servers;
  }

  get #waiting(): WaitingRoom {
    if (this.#room === undefined) throw new Error('open() comes first');
    return this.#room;
  }
}

function unconfirmed(
  name: string,
  replicas: number,
  { replicas: wanted, timeout }: Confirmation,
): BackendError {
  return new BackendError(
    'BACKEND_UNAVAILABLE',
    `only ${replicas} of ${wanted} replicas confirmed lock ${JSON.stringify(name)} within ${timeout} ms; see minReplicas`,
    { lockName: name },
  );
}

/** How a lock's value begins while the grant lives. */
function mark(owner: string, token: bigint): string {
  return `${owner}\n${token}\n`;
}

/** { holder, held since, position or 0, ms left } */
function refusalFrom(name: string, reply: unknown): Contended {
  if (!Array.isArray(reply) || reply.length < 4) {
    throw new BackendError(
      'BACKEND_REFUSED',
      `the key of lock ${JSON.stringify(name)} holds what Holdfast did not write; delete it, or use another prefix`,
      { lockName: name, transient: false },
    );
  }
  const [holder, since, position, left] = reply as [string, string, number, number];
  return {
    ...(holder === '' ? {} : { holder: { owner: holder, since: new Date(Number(since)) } }),
    ...(position === 0 ? {} : { position }),
    retryAfter: Math.max(0, left),
  };
}

/** { value or null, ms left, members… } */
function stateFrom(name: string, reply: unknown): LockState {
  const [value, left, ...members] = reply as [string | null, number, ...string[]];
  const waiters = members.map((member, index) => ({
    owner: member.slice(member.lastIndexOf(' ') + 1),
    position: index + 1,
  }));
  if (value === null) return { name, held: false, waiters };
  const [owner = '', token = '0', since = '0', ...metadata] = value.split('\n');
  const text = metadata.join('\n');
  return {
    name,
    held: true,
    ...(owner === '' ? {} : { owner }),
    fencingToken: BigInt(token),
    acquiredAt: new Date(Number(since)),
    expiresIn: Math.max(0, left),
    ...(text === '' ? {} : { metadata: text }),
    waiters,
  };
}
