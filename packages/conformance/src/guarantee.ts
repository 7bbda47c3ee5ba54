import type { Case } from './harness/case.js';

/** One case: a story on a ground of its own. It fails by throwing. */
export type Story = (ground: Case) => Promise<void>;

/** Cases by name; each name is the promise that it checks. */
export type Cases = Readonly<Record<string, Story>>;

/** One word of the specification, and the cases that hold a backend to it. */
export interface Guarantee {
  readonly name: string;
  readonly cases: Cases;
  /** Cases that need a process of the suite's own: where the option `child` is given. */
  readonly withProcesses?: Cases;
  /** Cases that need the server to fail: where the option `faults` is given. They run alone. */
  readonly withFaults?: Cases;
}
