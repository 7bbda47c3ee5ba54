import type { Matcher } from './matchers.js';

/** `up` is from the client to the server, `down` from the server to the client. */
export type Direction = 'up' | 'down';

/** What becomes of the connection: RST on both sides, an orderly end, or open and silent in that direction. */
export type Aftermath = 'reset' | 'end' | 'mute';

/** A fault in force. `heal` takes it back; so does the end of a `using` block. */
export interface Fault extends Disposable {
  /** How often it has struck. */
  readonly hits: number;
  /** Resolves when it has struck for the first time, to the end: an answer dropped, a connection cut. */
  readonly hit: Promise<void>;
  /** Takes the fault back. What was held is delivered, as the network would after a partition. Idempotent. */
  heal(): void;
}

/** What a rule does with the request that it matches, or with the message for `swallow`. */
export type Action =
  | { readonly kind: 'swallow' }
  | { readonly kind: 'drop-request'; readonly afterwards: Aftermath }
  | { readonly kind: 'hold-request' }
  | { readonly kind: 'cut-request'; readonly bytes: number | undefined; readonly afterwards: Aftermath }
  | AnswerAction;

/** Actions that begin when the request has gone up and act on what comes down. */
export type AnswerAction =
  | { readonly kind: 'drop-answer'; readonly afterwards: Aftermath; readonly answer: Matcher | undefined }
  | { readonly kind: 'hold-answer' }
  | { readonly kind: 'cut-answer'; readonly bytes: number | undefined; readonly afterwards: Aftermath };

/** Something that a proxy does until it is healed. */
export class ActiveFault implements Fault {
  readonly hit: Promise<void>;
  #hits = 0;
  #healed = false;
  readonly #firstHit: () => void;
  readonly #onHeal: (fault: ActiveFault) => void;

  constructor(onHeal: (fault: ActiveFault) => void) {
    let firstHit: () => void = () => undefined;
    this.hit = new Promise((resolve) => {
      firstHit = resolve;
    });
    this.#firstHit = firstHit;
    this.#onHeal = onHeal;
  }

  get hits(): number {
    return this.#hits;
  }

  get healed(): boolean {
    return this.#healed;
  }

  strike(): void {
    this.#hits += 1;
    this.#firstHit();
  }

  heal(): void {
    if (this.#healed) return;
    this.#healed = true;
    this.#onHeal(this);
  }

  [Symbol.dispose](): void {
    this.heal();
  }
}

/** A fault that strikes at chosen requests, a limited number of times. */
export class Rule extends ActiveFault {
  readonly direction: Direction;
  readonly matcher: Matcher;
  readonly action: Action;
  #left: number;

  constructor(options: {
    readonly direction: Direction;
    readonly matcher: Matcher;
    readonly action: Action;
    readonly times: number;
    readonly onHeal: (fault: ActiveFault) => void;
  }) {
    super(options.onHeal);
    this.direction = options.direction;
    this.matcher = options.matcher;
    this.action = options.action;
    this.#left = options.times;
  }

  /** Whether it may match again. */
  get spent(): boolean {
    return this.healed || this.#left === 0;
  }

  /** Uses it up once. */
  spend(): void {
    this.#left -= 1;
  }
}
