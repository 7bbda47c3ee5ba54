import type { LockEvents, Locks } from '@holdfast/core';
import { json, type Output, type StatusLine } from '../output.js';
import { printable, quoted, span } from '../text.js';
import type { CommandEnd } from './group.js';

/** How much `run` tells on standard error while it works. */
export type Style = 'quiet' | 'verbose' | 'json';

/** Tells what happens during a run, in words or as JSON events, one a line. */
export class Reporter {
  readonly #output: Output;
  readonly #style: Style;

  constructor(output: Output, style: Style) {
    this.#output = output;
    this.#style = style;
  }

  /** The line for what changes while somebody watches: none where a program may be reading. */
  get status(): StatusLine | undefined {
    return this.#style === 'json' ? undefined : this.#output.status;
  }

  /** Tells the lock's own events. */
  follow(locks: Locks): void {
    this.#on(locks, 'waiting', ({ position, holder }) => {
      const place = position === undefined ? '' : `, place ${position}`;
      return `waiting${place}${holder === undefined ? '' : `, held by ${printable(holder)}`}`;
    });
    this.#on(
      locks,
      'acquired',
      ({ fencingToken, waited }) => `acquired after ${span(waited)}, token ${fencingToken}`,
    );
    this.#on(locks, 'renewed', ({ ttl }) => `renewed for ${span(ttl)}`);
    this.#on(locks, 'released', ({ heldFor }) => `released after ${span(heldFor)}`);
    this.#on(locks, 'error', ({ error }) => `fault: ${printable(error.message)}`);
  }

  /** The command runs. */
  started(name: string, pid: number): void {
    this.#tell('started', { name, pid }, `started process ${pid}`);
  }

  /** The command and everything that it started have gone. */
  ended(name: string, end: CommandEnd): void {
    if (end.kind === 'unstartable') return;
    const how = end.kind === 'exited' ? { code: end.code } : { signal: end.signal };
    this.#tell('ended', { name, ...how }, `command ended: ${Object.values(how).join()}`);
  }

  /** Something that its user should see in any style but JSON's. */
  failed(event: string, name: string, message: string): void {
    if (this.#style === 'json') this.#event(event, { name, message });
    else this.#output.err(`holdfast: ${printable(message)}`);
  }

  #on<E extends keyof LockEvents>(locks: Locks, event: E, words: (payload: LockEvents[E]) => string): void {
    locks.on(event, (payload) => {
      const { error, ...rest } = payload as { readonly error?: Error };
      this.#tell(event, error === undefined ? rest : { ...rest, message: error.message }, words(payload));
    });
  }

  #tell(event: string, payload: object, words: string): void {
    if (this.#style === 'json') this.#event(event, payload);
    else if (this.#style === 'verbose') {
      const { name } = payload as { readonly name?: string };
      this.#output.err(`holdfast: ${name === undefined ? '' : `${quoted(name)}: `}${words}`);
    }
  }

  #event(event: string, payload: object): void {
    this.#output.err(json({ event, at: new Date().toISOString(), ...payload }));
  }
}
