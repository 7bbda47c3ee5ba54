import type { Clock, Timer } from '@holdfast/core';
import type { IKeyValue, IWatchResponse } from 'etcd3';
import type { Sighting } from './lookout.js';
import type { WatchStream } from './rpc.js';
import type { Transport } from './transport.js';

/** How a watch ends: the key was deleted, or nobody can say any more whether it was. */
export type WatchOutcome = 'deleted' | 'broken';

/** How often the stream must give a sign of life, ms. */
const HEARTBEAT = 2_000;
/** Watches that are not wanted any more are taken back at the server together, this much later, ms: waking goes first. */
const SWEEP = 50;
/** A stream without watches is kept for the next one for this long, ms: an open stream keeps the process alive. */
const LINGER = 100;

interface Watch {
  readonly sighting: Sighting;
  readonly revision: bigint;
  /** Whoever wants to know: the one behind in the queue, and the one whose key it is. */
  readonly ended: Set<Ended>;
}

/** How a watch ended, and what the deleted key was just before, where the server still knows. */
export type Ended = (outcome: WatchOutcome, before?: IKeyValue) => void;

/** Replaced, never changed: whoever holds an old one knows that its time is over. */
type State =
  | { readonly kind: 'closed' }
  | { readonly kind: 'opening' }
  | { readonly kind: 'open'; readonly stream: WatchStream; readonly failed: () => void };

/**
 * Waits for keys to be deleted, all over one stream.
 *
 * etcd3 1.1.2's own watchers end without a word after a compaction or when an auth token expires, and a half-open
 * connection leaves them waiting for ever. Here the stream is asked for a sign of life, and whatever goes wrong ends the
 * watch as `broken`: its owner reads the key, and watches again.
 */
export class Watches {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #watches = new Map<string, Watch>();
  /** The ids of those by what they watch. */
  readonly #ids = new Map<string, string>();
  #state: State = { kind: 'closed' };
  #lastId = 0n;
  #timer: Timer | undefined;
  #heard = false;
  /** At the server still, and wanted by nobody here. */
  #unwanted: string[] = [];
  #sweep: Timer | undefined;

  constructor(transport: Transport, clock: Clock) {
    this.#transport = transport;
    this.#clock = clock;
  }

  /** How many keys are being watched. */
  get size(): number {
    return this.#watches.size;
  }

  /**
   * Calls `ended` once, when the key is deleted after `revision`, at which it was the claim that was seen, or when the
   * watch breaks.
   *
   * @returns ends the watch silently
   */
  watch(sighting: Sighting, revision: bigint, ended: Ended): () => void {
    // If this claim is watched already, from whichever revision on, it was there then, and so it was in between.
    const id = this.#ids.get(idOf(sighting)) ?? this.#begin(sighting, revision);
    const watch = this.#watches.get(id);
    watch?.ended.add(ended);
    return () => {
      if (watch?.ended.delete(ended) === true && watch.ended.size === 0) this.#unwatch(id);
    };
  }

  #begin(sighting: Sighting, revision: bigint): string {
    const id = String(++this.#lastId);
    this.#watches.set(id, { sighting, revision, ended: new Set() });
    this.#ids.set(idOf(sighting), id);
    if (this.#state.kind === 'open') this.#create(this.#state.stream, id);
    else if (this.#state.kind === 'closed') this.#open();
    if (this.#watches.size === 1) this.#expectHeartbeat();
    return id;
  }

  /** Whoever still watches is told that it is over. */
  close(): void {
    this.#end();
    this.#giveUp();
  }

  #open(): void {
    const opening: State = { kind: 'opening' };
    this.#state = opening;
    this.#transport.openWatch().then(
      ({ stream, failed }) => this.#opened(opening, stream, failed),
      () => this.#state === opening && this.#break(),
    );
  }

  #opened(opening: State, stream: WatchStream, failed: () => void): void {
    const open: State = { kind: 'open', stream, failed };
    const broken = (): void => {
      if (this.#state === open) this.#break();
    };
    stream.on('error', broken);
    stream.on('end', broken);
    if (this.#state !== opening) {
      endQuietly(stream);
      return;
    }
    this.#state = open;
    stream.on('data', (response) => {
      if (this.#state === open) this.#receive(response);
    });
    for (const id of this.#watches.keys()) this.#create(stream, id);
    if (this.#watches.size === 0) this.#linger();
  }

  #create(stream: WatchStream, id: string): void {
    const watch = this.#watches.get(id);
    if (watch === undefined) return;
    const { revision } = watch;
    const { key } = watch.sighting;
    const start = String(revision + 1n);
    stream.write({
      create_request: { key, start_revision: start, watch_id: id, filters: ['Noput'], prev_kv: true },
    });
  }

  #receive(response: IWatchResponse): void {
    this.#heard = true;
    // A watch that the server refuses to make is answered without its id.
    const refused = response.canceled && response.watch_id === '-1';
    const deleted = response.events.find(({ type }) => type === 'Delete');
    if (refused) this.#break();
    else if (deleted) this.#finish(response.watch_id, 'deleted', deleted.prev_kv ?? undefined);
    else if (response.canceled) this.#finish(response.watch_id, 'broken');
  }

  #finish(id: string, outcome: WatchOutcome, before?: IKeyValue): void {
    const watch = this.#watches.get(id);
    this.#unwatch(id, outcome === 'broken');
    tell(watch, outcome, before);
  }

  #unwatch(id: string, alreadyCancelled = false): void {
    const watch = this.#watches.get(id);
    if (watch === undefined) return;
    this.#watches.delete(id);
    this.#ids.delete(idOf(watch.sighting));
    if (this.#state.kind !== 'open') return;
    if (!alreadyCancelled) this.#takeBackLater(id);
    if (this.#watches.size === 0) this.#linger();
  }

  #takeBackLater(id: string): void {
    this.#unwanted.push(id);
    this.#sweep ??= this.#clock.setTimer(SWEEP, () => {
      for (const watch_id of this.#forgetUnwanted())
        if (this.#state.kind === 'open') this.#state.stream.write({ cancel_request: { watch_id } });
    });
  }

  /** The stream ends with all of its watches, or they are being taken back. */
  #forgetUnwanted(): readonly string[] {
    const unwanted = this.#unwanted;
    this.#unwanted = [];
    this.#sweep?.cancel();
    this.#sweep = undefined;
    return unwanted;
  }

  #linger(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(LINGER, () => this.#end());
  }

  /** Whatever comes down the stream is a sign of life; asked for in time, so that a quiet queue gives one too. */
  #expectHeartbeat(): void {
    this.#timer?.cancel();
    this.#heard = false;
    if (this.#state.kind === 'open') this.#state.stream.write({ progress_request: {} });
    this.#timer = this.#clock.setTimer(HEARTBEAT, () => {
      if (this.#heard) return this.#expectHeartbeat();
      if (this.#state.kind === 'open') this.#state.failed();
      this.#break();
    });
  }

  #break(): void {
    const { kind } = this.#state;
    if (kind === 'open') this.#state.stream.cancel();
    this.#state = { kind: 'closed' };
    this.#timer?.cancel();
    this.#forgetUnwanted();
    this.#giveUp();
  }

  #giveUp(): void {
    const watches = [...this.#watches.values()];
    this.#watches.clear();
    this.#ids.clear();
    for (const watch of watches) tell(watch, 'broken');
  }

  #end(): void {
    this.#timer?.cancel();
    this.#forgetUnwanted();
    if (this.#state.kind === 'open') endQuietly(this.#state.stream);
    this.#state = { kind: 'closed' };
  }
}

function tell(watch: Watch | undefined, outcome: WatchOutcome, before?: IKeyValue): void {
  const listeners = [...(watch?.ended ?? [])];
  watch?.ended.clear();
  for (const ended of listeners) ended(outcome, before);
}

function idOf({ key, token }: Sighting): string {
  return `${token} ${key.toString('latin1')}`;
}

/** Ended before it is cancelled: etcd3 takes the error of a writable stream for a failure of its host. */
function endQuietly(stream: WatchStream): void {
  stream.end();
  stream.cancel();
}
