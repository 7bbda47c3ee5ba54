/**
 * The program of a chaos worker: in each lane it acquires, works and releases, over and over, in ways that depend on
 * the seed, and writes down what it saw. It is killed, stopped, blocked and cut off while it does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ConnectOptions,
  connect,
  isHoldfastError,
  type LockHandle,
  LockLostError,
  type Locks,
  LockTimeoutError,
} from '@holdfast/core';
import type { Validity } from '../history/event.js';
import { observe, Recorder } from '../history/recorder.js';
import { serveWorker } from '../processes/serve-worker.js';
import { Random } from '../random/random.js';
import { mutantModules } from './mutants/mutant.js';
import { RegisterClient } from './registers.js';
import { countResources, countSettled } from './resources.js';
import { TIME_FACTOR } from './time-factor.js';
import type { WorkerConfig } from './worker-config.js';

/** A change of validity below this is the reading's own noise, and is not written down. */
const NOISE = 2;

/** How often a lane that has just released closes its whole instance. */
const CLOSES = 0.003;

/** ms that the backend may take to be there. */
const OPEN_WITHIN = 60_000 * TIME_FACTOR;

/** ms after `close` within which timers and sockets must have gone. */
const SETTLE_WITHIN = 3_000 * TIME_FACTOR;

interface WorkerParts {
  readonly recorder: Recorder;
  readonly locks: Locks;
  reopen(): Promise<Locks>;
  readonly registers: RegisterClient;
  /** What the process had before it had locks. */
  readonly before: Readonly<Record<string, number>>;
}

class Worker {
  readonly #config: WorkerConfig;
  readonly #recorder: Recorder;
  #locks: Locks;
  readonly #reopen: () => Promise<Locks>;
  readonly #registers: RegisterClient;
  /** What the lanes hold. */
  readonly #sessions = new Set<Session>();
  #reopening: Promise<void> | undefined;
  readonly #before: Readonly<Record<string, number>>;
  readonly #pending = new Set<AbortController>();
  #stopping = false;
  readonly #lanes: Promise<void>[];

  constructor(config: WorkerConfig, { recorder, locks, reopen, registers, before }: WorkerParts) {
    this.#config = config;
    this.#before = before;
    this.#recorder = recorder;
    this.#locks = this.#listened(locks);
    this.#reopen = reopen;
    this.#registers = registers;
    const random = new Random(config.seed);
    this.#lanes = Array.from({ length: config.lanes }, (_, index) =>
      this.#lane(random.fork(`lane ${index}`)),
    );
  }

  /** Ends every lane, gives everything back, and counts what is left of it. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const acquisition of this.#pending) acquisition.abort(new GaveUp());
    await Promise.all(this.#lanes);
    await this.#reopening;
    await this.#locks.close();
    const counts = await countSettled(this.#before, SETTLE_WITHIN);
    this.#recorder.append({ type: 'levels', phase: 'after', scope: this.#config.process, counts });
    this.#recorder.close();
    await this.#registers.close();
  }

  #listened(locks: Locks): Locks {
    locks.on('waiting', ({ name = '', owner = '', position }) => {
      this.#recorder.append({ type: 'queued', name, owner, ...(position === undefined ? {} : { position }) });
    });
    return locks;
  }

  /** Closes in the midst of it, under the other lanes' holds and waits, and comes back as a new instance. */
  async #comeBack(): Promise<void> {
    for (const session of this.#sessions) session.closing();
    await this.#locks.close();
    this.#locks = this.#listened(await this.#reopen());
  }

  async #lane(random: Random): Promise<void> {
    while (!this.#stopping) {
      await this.#reopening;
      const hold = await this.#acquire(random);
      if (hold === undefined) await sleep(random.between(1, 40));
      else await this.#use(hold, random);
      if (hold !== undefined && this.#reopening === undefined && random.chance(CLOSES)) {
        this.#reopening = this.#comeBack().finally(() => {
          this.#reopening = undefined;
        });
      }
      await sleep(random.between(0, 15));
    }
  }

  async #acquire(random: Random): Promise<Session | undefined> {
    const { names, ttl: range } = this.#config;
    const name = names[random.below(names.length)] ?? '';
    const ttl = Math.round(random.between(range.min, range.max));
    const style = random.pick(['wait', 'wait', 'wait', 'impatient', 'abort', 'try'] as const);
    const wait = style === 'impatient' ? Math.round(random.between(0, ttl)) : 4 * range.max + 20_000;
    const renew = random.chance(0.85);
    const deadline = random.between(1, ttl);
    const op = this.#recorder.nextOp();
    const lock = this.#locks.lock(name, { ttl, renew });
    const queue = style !== 'try' && wait > 0;
    this.#recorder.append({
      type: 'invoke',
      op,
      action: 'acquire',
      name,
      queue,
      ttl,
      ...(queue ? { wait } : {}),
    });
    const giveUp = new AbortController();
    const timer = style === 'abort' ? setTimeout(() => giveUp.abort(new GaveUp()), deadline) : undefined;
    const { signal } = giveUp;
    this.#pending.add(giveUp);
    try {
      const handle = await (style === 'try' ? lock.tryAcquire({ signal }) : lock.acquire({ wait, signal }));
      if (handle === null) {
        this.#recorder.append({ type: 'fail', op, reason: 'contended' });
        return undefined;
      }
      const session = new Session(handle, op, this.#recorder);
      this.#sessions.add(session);
      return session;
    } catch (error) {
      const left = signal.aborted || isHoldfastError(error, 'LOCKS_CLOSED');
      const outcome = error instanceof LockTimeoutError ? 'contended' : left ? 'aborted' : undefined;
      if (outcome !== undefined) this.#recorder.append({ type: 'fail', op, reason: outcome });
      else this.#recorder.append({ type: 'unknown', op, reason: describe(error) });
      return undefined;
    } finally {
      clearTimeout(timer);
      this.#pending.delete(giveUp);
    }
  }

  async #use(session: Session, random: Random): Promise<void> {
    const { handle } = session;
    const { name, ttl } = handle;
    const length = random.chance(0.1) ? random.between(0.3, 1.5) * ttl : random.between(2, 120);
    const extendAt = random.chance(0.2) ? random.below(5) : undefined;
    const until = performance.now() + length;
    for (let step = 0; handle.isHeld() && performance.now() < until && !this.#stopping; step += 1) {
      if (step === extendAt) await session.extend(Math.round(random.between(0.5, 1.2) * ttl));
      await this.#registers.writeFenced(name, handle.fencingToken);
      const version = await this.#registers.readVersion(name);
      // Whoever is stopped here comes back to overwrite what others have written meanwhile.
      await sleep(random.between(1, 8));
      await this.#registers.update(name, handle.fencingToken, version);
      // And this is what a fenced register is for.
      await this.#registers.writeFenced(name, handle.fencingToken);
      await sleep(Math.max(0, Math.min(random.between(2, 25), until - performance.now())));
      session.look();
    }
    await session.release();
    this.#sessions.delete(session);
  }
}

/** One hold, and the lines that tell of it. */
class Session {
  readonly handle: LockHandle;
  readonly #recorder: Recorder;
  #until: number;
  #releaseOp: number | undefined;
  readonly #onLoss = (): void => {
    const { name, owner, signal } = this.handle;
    const reason = signal.reason instanceof LockLostError ? signal.reason.reason : describe(signal.reason);
    this.#recorder.append({ type: 'lost', name, owner, reason });
  };

  constructor(handle: LockHandle, op: number, recorder: Recorder) {
    this.handle = handle;
    this.#recorder = recorder;
    const { owner, fencingToken } = handle;
    const validity = observe(handle);
    this.#until = validity.until;
    recorder.append({ type: 'ok', op, action: 'acquire', owner, token: String(fencingToken), ...validity });
    if (handle.signal.aborted) this.#onLoss();
    else handle.signal.addEventListener('abort', this.#onLoss, { once: true });
  }

  /** Writes down what the handle claims, if that has changed. */
  look(): void {
    const validity = observe(this.handle);
    if (validity.until <= validity.from || Math.abs(validity.until - this.#until) < NOISE) return;
    this.#claim(validity);
  }

  async extend(ttl: number): Promise<void> {
    const { handle } = this;
    const { name, owner } = handle;
    const op = this.#recorder.nextOp();
    this.#recorder.append({ type: 'invoke', op, action: 'extend', name, owner, ttl });
    try {
      await handle.extend(ttl);
      const validity = observe(handle);
      this.#until = validity.until;
      this.#recorder.append({ type: 'ok', op, action: 'extend', ...validity });
    } catch (error) {
      const type = error instanceof LockLostError ? 'fail' : 'unknown';
      this.#recorder.append({ type, op, reason: describe(error) });
    }
  }

  /** `close` gives it back from now on: nothing is claimed any more. */
  closing(): void {
    this.#releaseOp ??= this.#askToRelease();
  }

  #askToRelease(): number {
    this.look();
    const { name, owner } = this.handle;
    const op = this.#recorder.nextOp();
    this.#recorder.append({ type: 'invoke', op, action: 'release', name, owner });
    return op;
  }

  async release(): Promise<void> {
    this.closing();
    const { handle } = this;
    const op = this.#releaseOp ?? 0;
    try {
      const released = await handle.release();
      this.#recorder.append({ type: 'ok', op, action: 'release', released });
    } catch (error) {
      this.#recorder.append({ type: 'unknown', op, reason: describe(error) });
    } finally {
      handle.signal.removeEventListener('abort', this.#onLoss);
    }
  }

  #claim(validity: Validity): void {
    const { name, owner } = this.handle;
    this.#until = validity.until;
    this.#recorder.append({ type: 'held', name, owner, ...validity });
  }
}

class GaveUp extends Error {}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: string };
  return code === undefined ? error.message : `${code}: ${error.message}`;
}

async function start(config: WorkerConfig): Promise<Worker> {
  const recorder = new Recorder(config.historyFile, config.process);
  const registers = await RegisterClient.connect(config.registers, config.process);
  // With the registers' connection, which also brings in what Node opens only once.
  const before = countResources();
  recorder.append({ type: 'levels', phase: 'before', scope: config.process, counts: before });
  const { url, mutant } = config;
  const options = mutant === undefined ? {} : { backends: await mutantModules(url, mutant) };
  const reopen = () => open(url, options);
  return new Worker(config, { recorder, locks: await reopen(), reopen, registers, before });
}

/** As an application would start: while its server is away, it tries again. */
async function open(url: string, options: ConnectOptions): Promise<Locks> {
  const deadline = performance.now() + OPEN_WITHIN;
  for (;;) {
    try {
      return await connect(url, options);
    } catch (error) {
      if (!isHoldfastError(error, 'BACKEND_UNAVAILABLE') || performance.now() > deadline) throw error;
      await sleep(250);
    }
  }
}

let worker: Worker | undefined;

serveWorker({
  /** Answers when it works. */
  start: async (config: WorkerConfig) => {
    worker = await start(config);
  },
  /** Answers when its event loop turns. */
  ping: () => undefined,
  /** Answers when everything is given back and closed. */
  stop: () => worker?.stop(),
});
