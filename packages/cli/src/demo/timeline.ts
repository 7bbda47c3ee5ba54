import { span } from '../text.js';
import type { HoldRecord } from './crew.js';

const WIDTH = 64;

/** A lane for each worker: `█` where it held the lock, `✗` where it was killed, `·` until its lock was free. */
export function timeline(holds: readonly HoldRecord[], workers: number): string {
  const start = Math.min(...holds.map(({ from }) => from));
  const end = Math.max(...holds.map(({ from, to, killedAt }) => to ?? killedAt ?? from));
  const column = (at: number): number =>
    Math.min(WIDTH - 1, Math.floor(((at - start) / Math.max(1, end - start)) * WIDTH));

  const lanes = Array.from({ length: workers }, () => Array<string>(WIDTH).fill(' '));
  for (const [index, hold] of holds.entries()) {
    const lane = lanes[hold.worker - 1] ?? [];
    fill(lane, column(hold.from), column(hold.to ?? hold.killedAt ?? hold.from), '█');
    if (hold.killedAt === undefined) continue;
    const freed = holds[index + 1]?.from ?? end;
    fill(lane, column(hold.killedAt) + 1, column(freed), '·');
    lane[column(hold.killedAt)] = '✗';
  }
  const rows = lanes.map((lane, index) => `  worker ${index + 1}  │${lane.join('')}│`);
  const length = span(end - start);
  return [...rows, `            0${length.padStart(WIDTH)}`].join('\n');
}

function fill(lane: string[], from: number, to: number, mark: string): void {
  for (let at = from; at <= to && at < lane.length; at++) lane[at] = mark;
}

/** The holds as lines: when, who, with which fencing token. */
export function listing(holds: readonly HoldRecord[], limit: number): string {
  const [first] = holds;
  const shown = holds.slice(0, limit).map(({ worker, token, from, to, killedAt }) => {
    const at = span(from - (first?.from ?? 0)).padStart(7);
    const fate = killedAt !== undefined ? 'killed while it held' : `held for ${span((to ?? from) - from)}`;
    return `  ${at}  worker ${worker}  token ${token}  ${fate}`;
  });
  return holds.length > limit
    ? [...shown, `  …and ${holds.length - limit} more`].join('\n')
    : shown.join('\n');
}

/** What would be wrong: holds that overlap, tokens that do not rise. Undefined when nothing is. */
export function faultIn(holds: readonly HoldRecord[]): string | undefined {
  for (const [index, hold] of holds.entries()) {
    const next = holds[index + 1];
    if (next === undefined) return undefined;
    if (next.token <= hold.token) return `token ${next.token} came after ${hold.token}`;
    const until = hold.to ?? hold.killedAt ?? hold.from;
    if (next.from < until) return `workers ${hold.worker} and ${next.worker} held at once`;
  }
  return undefined;
}
