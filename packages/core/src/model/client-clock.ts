import type { Clock, Timer } from '../clock.js';
import type { ManualClock } from '../testing/manual-clock.js';

/**
 * One client's view of the one true time: its clock runs at a rate of its own, its wall clock can be set, its process
 * can be stopped (time passes, nothing runs) and its machine suspended (the monotonic clock stands still as well).
 */
export class ClientClock implements Clock {
  readonly #true: ManualClock;
  readonly #rate: number;
  readonly #start: number;
  #state: 'running' | 'stopped' | 'suspended' = 'running';
  #suspendedAt = 0;
  #suspended = 0;
  #wallAhead = 0;
  readonly #due = new Set<() => void>();
  readonly #resumed = new Set<() => void>();

  constructor(trueClock: ManualClock, rate: number) {
    this.#true = trueClock;
    this.#rate = rate;
    this.#start = trueClock.now();
  }

  now(): number {
    const until = this.#state === 'suspended' ? this.#suspendedAt : this.#true.now();
    return (until - this.#start - this.#suspended) * this.#rate;
  }

  wall(): number {
    return this.#true.wall() + this.#wallAhead;
  }

  uptime(): number {
    return (this.#true.now() - this.#start) * this.#rate;
  }

  setTimer(delay: number, callback: () => void): Timer {
    const due = this.now() + Math.max(0, delay);
    let pending: Timer | undefined;
    const arm = (): void => {
      pending = this.#true.setTimer((due - this.now()) / this.#rate, fire);
    };
    const fire = (): void => {
      this.#due.delete(fire);
      if (this.#state !== 'running') this.#due.add(fire);
      // Suspended meanwhile: the monotonic clock has not come that far.
      else if (this.now() < due - 1e-6) arm();
      else callback();
    };
    arm();
    return {
      cancel: () => {
        pending?.cancel();
        this.#due.delete(fire);
      },
    };
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** How long the machine has been suspended, ms; undefined while it is not. */
  get suspendedFor(): number | undefined {
    return this.#state === 'suspended' ? this.#true.now() - this.#suspendedAt : undefined;
  }

  /** Someone sets the wall clock by hand. */
  setWall(by: number): void {
    this.#wallAhead += by;
  }

  /** SIGSTOP, or a blocked event loop. */
  stop(): void {
    if (this.#state === 'running') this.#state = 'stopped';
  }

  /** The lid of the notebook. */
  suspend(): void {
    if (this.#state !== 'running') return;
    this.#state = 'suspended';
    this.#suspendedAt = this.#true.now();
  }

  /**
   * Goes on. An event loop may come to its timers first, or to what came in meanwhile; then its timers follow with
   * `fireDue`.
   */
  resume(first: 'timers' | 'answers' = 'timers'): void {
    if (this.#state === 'suspended') this.#suspended += this.#true.now() - this.#suspendedAt;
    this.#state = 'running';
    if (first === 'timers') this.fireDue();
    const resumed = [...this.#resumed];
    this.#resumed.clear();
    for (const tell of resumed) tell();
  }

  /** The timers that fell due while the process stood still. */
  fireDue(): void {
    const due = [...this.#due];
    this.#due.clear();
    for (const fire of due) fire();
  }

  /** Resolves when the process runs: at once if it does. Whatever comes from outside waits for that. */
  async running(): Promise<void> {
    while (this.#state !== 'running') await new Promise<void>((tell) => this.#resumed.add(tell));
  }
}
