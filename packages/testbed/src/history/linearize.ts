import { lowerBound } from './rules/rule.js';

/** A write to a fenced register, as its writer saw it. */
export interface FencedOperation {
  readonly token: bigint;
  /** When it was asked for and when the answer was there, ms; an unknown outcome has no end. */
  readonly from: number;
  readonly until: number;
  readonly outcome: 'accepted' | 'refused' | 'unknown';
}

/** `unknown`: the budget ran out. `stuckAt` is, for a failure, the end of the earliest write that was never explained. */
export interface Linearization {
  readonly verdict: 'pass' | 'fail' | 'unknown';
  readonly stuckAt: number;
}

/**
 * Is there an order of these writes, each taking effect between its call and its answer, in which a register that
 * accepts exactly the tokens not older than its newest gives every answer that was seen? Unknown writes may take
 * effect at any time after their call, or never.
 *
 * The search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the memory of Lowe ("Testing
 * for linearizability", 2017). What keeps it near-linear on this register: a write that leaves the newest token as it
 * is may be placed at once, since that can spoil nothing; and the state is only (what of the known outcomes is placed,
 * the newest token), since an unknown write matters exactly while its token is above the newest.
 */
export function linearize(operations: readonly FencedOperation[], budget: number): Linearization {
  return new Search(operations, budget).run();
}

interface State {
  /** Every known operation before this index is placed. */
  readonly first: number;
  /** Those placed beyond `first`, ascending. */
  readonly beyond: readonly number[];
  readonly newest: bigint;
}

/** Kept ascending by token, each with the earliest call from it on, which says where a scan may end. */
interface UnknownWrite {
  readonly token: bigint;
  readonly from: number;
  readonly earliest: number;
}

class Search {
  readonly #known: readonly FencedOperation[];
  readonly #unknown: readonly UnknownWrite[];
  readonly #seen = new Set<string>();
  #steps: number;
  #stuckAt = -Infinity;

  constructor(operations: readonly FencedOperation[], budget: number) {
    const known = operations.filter(({ outcome }) => outcome !== 'unknown');
    this.#known = known.sort((a, b) => a.from - b.from);
    let earliest = Infinity;
    this.#unknown = operations
      .filter(({ outcome }) => outcome === 'unknown')
      .sort((a, b) => Number(b.token - a.token))
      .map(({ token, from }) => {
        earliest = Math.min(earliest, from);
        return { token, from, earliest };
      })
      .reverse();
    this.#steps = budget;
  }

  run(): Linearization {
    const stack: State[] = [{ first: 0, beyond: [], newest: -1n }];
    for (let state = stack.pop(); state !== undefined; state = stack.pop()) {
      const settled = this.#placeHarmless(state);
      if (this.#steps <= 0) return { verdict: 'unknown', stuckAt: this.#stuckAt };
      if (settled.first === this.#known.length) return { verdict: 'pass', stuckAt: Infinity };
      const key = `${settled.first}|${settled.beyond.join()}|${settled.newest}`;
      if (this.#seen.has(key)) continue;
      this.#seen.add(key);
      stack.push(...this.#next(settled));
    }
    return { verdict: 'fail', stuckAt: this.#stuckAt };
  }

  /** Places whatever fits now and changes nothing: refusals of older tokens, repeated writes of the newest. */
  #placeHarmless(state: State): State {
    let { first, beyond } = state;
    const { newest } = state;
    for (;;) {
      const harmless = this.#candidates({ first, beyond, newest }).find((index) => {
        const { token, outcome } = this.#known[index] as FencedOperation;
        return outcome === 'refused' ? token < newest : token === newest;
      });
      if (harmless === undefined) return { first, beyond, newest };
      ({ first, beyond } = this.#place({ first, beyond, newest }, harmless, newest));
    }
  }

  /** The states that one more effect leads to, the most promising last. */
  #next(state: State): State[] {
    const candidates = this.#candidates(state);
    const deadline = this.#deadline(state);
    this.#stuckAt = Math.max(this.#stuckAt, deadline);
    const states: State[] = [];
    const firstNewer = lowerBound(this.#unknown, state.newest + 1n, ({ token }) => token);
    for (let index = firstNewer; index < this.#unknown.length; index += 1) {
      this.#steps -= 1;
      const { token, from, earliest } = this.#unknown[index] as UnknownWrite;
      if (earliest > deadline) break;
      if (from <= deadline) states.push({ ...state, newest: token });
    }
    const accepted = candidates
      .map((index) => ({ index, ...(this.#known[index] as FencedOperation) }))
      .filter(({ outcome, token }) => outcome === 'accepted' && token > state.newest)
      .sort((a, b) => Number(b.token - a.token));
    for (const { index, token } of accepted) states.push(this.#place(state, index, token));
    return states;
  }

  /** The known operations that may take effect next: those asked for before any open one had to be over. */
  #candidates(state: State): number[] {
    const candidates: number[] = [];
    let deadline = Infinity;
    for (let index = state.first; index < this.#known.length; index += 1) {
      this.#steps -= 1;
      const operation = this.#known[index] as FencedOperation;
      if (operation.from > deadline) break;
      if (state.beyond.includes(index)) continue;
      candidates.push(index);
      deadline = Math.min(deadline, operation.until);
    }
    return candidates;
  }

  #deadline(state: State): number {
    return Math.min(...this.#candidates(state).map((index) => (this.#known[index] as FencedOperation).until));
  }

  #place(state: State, index: number, newest: bigint): State {
    const placed = new Set([...state.beyond, index]);
    let { first } = state;
    while (placed.delete(first)) first += 1;
    return { first, beyond: [...placed].sort((a, b) => a - b), newest };
  }
}
