import { exclusion } from '../history/rules/exclusion.js';
import { tokens } from '../history/rules/tokens.js';
import type { FaultSpan, Span, Story } from '../history/story.js';

/** A window of the run. */
export interface Panel extends Span {
  readonly title: string;
}

const AROUND = 400;
const LONGEST = 8_000;

/**
 * Chooses what to show: first the moments at which exclusion or the order of tokens was broken, then one fault of
 * each kind, the slowest recovery of it. Without either, the run's beginning.
 */
export function choosePanels(story: Story, most: number): Panel[] {
  const promises = { exclusion: 'promised', fairness: 'fifo', searchBudget: 0 } as const;
  const broken = [...exclusion(story, promises).violations, ...tokens(story, promises).violations]
    .sort((a, b) => a.at - b.at)
    .map(({ kind, at, name }) =>
      window(`${kind} on ${name ?? '?'}`, { from: at - 2 * AROUND, until: at + 2 * AROUND }, story),
    );
  const faults = story.faults
    .filter(({ healedAt }) => healedAt !== Infinity)
    .map((fault) => faultPanel(story, fault));
  const slowest = new Map<string, Panel>();
  for (const { kind, panel } of faults) {
    const known = slowest.get(kind);
    if (known === undefined || panel.until - panel.from > known.until - known.from) slowest.set(kind, panel);
  }
  const chosen: Panel[] = [];
  for (const panel of [...broken, ...slowest.values()]) {
    if (chosen.length === most) break;
    if (!chosen.some((other) => panel.from < other.until && other.from < panel.until)) chosen.push(panel);
  }
  if (chosen.length === 0)
    chosen.push(window('the beginning', { from: story.from, until: story.until }, story));
  return chosen.sort((a, b) => a.from - b.from);
}

function faultPanel(story: Story, fault: FaultSpan): { kind: string; panel: Panel } {
  const next = story.holds
    .filter(({ claims }) => (claims[0]?.from ?? -Infinity) >= fault.healedAt)
    .map(({ name, claims }) => ({ name, from: claims[0]?.from ?? 0 }));
  const firstOfEach = new Map<string, number>();
  for (const { name, from } of next) if (!firstOfEach.has(name)) firstOfEach.set(name, from);
  const recovered = Math.max(fault.healedAt, ...firstOfEach.values());
  const span = {
    from: fault.injectedAt - AROUND,
    until: Math.min(recovered, fault.healedAt + fault.recoverWithin) + AROUND,
  };
  return { kind: fault.fault, panel: window(fault.fault, span, story) };
}

function window(what: string, span: Span, story: Story): Panel {
  const from = Math.max(span.from, story.from);
  const until = Math.max(from + 1, Math.min(span.until, story.until, from + LONGEST));
  const seconds = (time: number): string => ((time - story.from) / 1000).toFixed(1);
  return { title: `${what}: ${seconds(from)} s to ${seconds(until)} s of the run`, from, until };
}
