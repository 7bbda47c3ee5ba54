import type { FaultSpan, Hold, Span, Story } from '../history/story.js';
import { lanes } from './lanes.js';
import { choosePanels, type Panel } from './panels.js';
import { element, text, title } from './svg.js';

/** How the picture is drawn. */
export interface TimelineOptions {
  readonly title: string;
  /** A line under the title: what was run, how to repeat it. */
  readonly subtitle?: string;
  /** Windows of the run to draw. Default: where promises were broken, then around faults, at most `maxPanels`. */
  readonly panels?: readonly Panel[];
  /** Default 4. */
  readonly maxPanels?: number;
}

const WIDTH = 1120;
const LEFT = 116;
const RIGHT = 16;
const PLOT = WIDTH - LEFT - RIGHT;
const BAR = 72;
const BAR_GAP = 3;
const BAND_GAP = 10;
const SMALL = 9;
/** Light enough for black text on it, and told apart in grey by the label that each bar carries. */
const COLOURS = [
  '#a6cee3',
  '#fdbf6f',
  '#b2df8a',
  '#cab2d6',
  '#ffff99',
  '#fb9a99',
  '#ccebc5',
  '#e5d8bd',
] as const;
const STYLE =
  "text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#222}.small{font-size:9px;paint-order:stroke;stroke:#fff;stroke-opacity:.7;stroke-width:1.5px}.name{font-size:12px;font-weight:bold}.head{font-size:13px;font-weight:bold}.title{font-size:18px;font-weight:bold}.sub{font-size:11px;fill:#555}";

/**
 * Draws who held what when: a band for each lock name, a bar for each hold from its grant to its end, labelled with
 * its process, its owner's last characters and its token; the faults drawn across. Light, and legible on paper.
 */
export function drawTimeline(story: Story, options: TimelineOptions): string {
  const panels = options.panels ?? choosePanels(story, options.maxPanels ?? 4);
  const palette = new Palette(story);
  const parts: string[] = [];
  let y = 28;
  parts.push(text(16, y, options.title, { class: 'title' }));
  if (options.subtitle !== undefined) {
    y += 18;
    parts.push(text(16, y, options.subtitle, { class: 'sub' }));
  }
  y += 14;
  for (const panel of panels) {
    const drawn = drawPanel(story, panel, palette, y);
    parts.push(drawn.markup);
    y = drawn.bottom;
  }
  const legend = drawLegend(palette, y + 10);
  parts.push(legend.markup);
  return `${element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width: WIDTH,
      height: legend.bottom,
      viewBox: `0 0 ${WIDTH} ${Math.ceil(legend.bottom)}`,
      role: 'img',
    },
    [title(options.title), element('style', {}, STYLE), PATTERNS, background(legend.bottom), ...parts].join(
      '\n',
    ),
  )}\n`;
}

interface Drawn {
  readonly markup: string;
  readonly bottom: number;
}

/** What lies under the faults, apart from what lies over them. */
interface DrawnBand extends Drawn {
  readonly ground: string;
}

/** Where the times of a panel lie on the page. */
class Axis {
  readonly panel: Panel;

  constructor(panel: Panel) {
    this.panel = panel;
  }

  x(time: number): number {
    const { from, until } = this.panel;
    const share = (time - from) / (until - from);
    return LEFT + Math.min(1, Math.max(0, share)) * PLOT;
  }

  shows({ from, until }: Span): boolean {
    return from < this.panel.until && until > this.panel.from;
  }
}

/** What a hold takes up on the page: its claims, and after a death the time for which its ttl may still block others. */
function extent(hold: Hold): Span {
  const from = hold.claims[0]?.from ?? hold.acquisition.endedAt;
  const until = hold.diedAt === undefined ? (hold.claims.at(-1)?.until ?? from) : hold.promisedUntil;
  return { from, until };
}

function drawPanel(story: Story, panel: Panel, palette: Palette, top: number): Drawn {
  const axis = new Axis(panel);
  const holds = story.holds.filter((hold) => hold.claims.length > 0 && axis.shows(extent(hold)));
  const names = [...new Set(holds.map(({ name }) => name))].sort();
  const faults = story.faults.filter(({ injectedAt, healedAt }) =>
    axis.shows({ from: injectedAt - 1, until: healedAt + 1 }),
  );
  const parts: string[] = [text(16, top + 16, panel.title, { class: 'head' })];
  let y = top + 26;
  const labels = placeLabels(faults, axis);
  const labelRows = Math.max(0, ...labels.map(({ row }) => row + 1));
  const bandsTop = y + labelRows * 13 + 4;
  y = bandsTop;
  const bands: DrawnBand[] = [];
  for (const name of names) {
    const band = drawBand(
      name,
      holds.filter((hold) => hold.name === name),
      axis,
      palette,
      y,
    );
    bands.push(band);
    y = band.bottom + BAND_GAP;
  }
  const bottom = y - BAND_GAP;
  parts.push(...bands.map(({ ground }) => ground));
  parts.push(
    ...labels.map(({ fault, row }) =>
      drawFault(fault, axis, { label: top + 35 + row * 13, top: bandsTop, bottom }),
    ),
  );
  parts.push(...bands.map(({ markup }) => markup), drawTicks(story, axis, bandsTop, bottom));
  return { markup: element('g', {}, parts.join('\n')), bottom: bottom + 34 };
}

function drawBand(
  name: string,
  holds: readonly Hold[],
  axis: Axis,
  palette: Palette,
  top: number,
): DrawnBand {
  const rows = lanes(holds, extent);
  const base = holds.map(({ token }) => token).sort((a, b) => Number(a - b))[0] ?? 0n;
  const height = rows.length * (BAR + BAR_GAP) - BAR_GAP;
  const ground = element('rect', { x: LEFT, y: top, width: PLOT, height, fill: '#f4f4f4' });
  const parts = [
    text(16, top + 16, name.length > 11 ? `${name.slice(0, 10)}…` : name, { class: 'name' }),
    text(16, top + 30, `token ${shortNumber(base)} +`, { class: 'small' }),
  ];
  const placed = rows.flatMap((row, index) =>
    row.map((hold) => ({ hold, y: top + index * (BAR + BAR_GAP) })),
  );
  parts.push(...placed.map(({ hold, y }) => drawHold(hold, axis, palette, y)));
  parts.push(...clashes(holds).map((clash) => drawClash(clash, axis, top, height)));
  parts.push(...placed.map(({ hold, y }) => drawLabel(hold, axis, String(hold.token - base), y)));
  return { ground, markup: element('g', {}, parts.join('\n')), bottom: top + height };
}

/** Where the claimed part of a hold lies. */
function claimed(hold: Hold, axis: Axis): { left: number; width: number } {
  const { from, until } = extent(hold);
  const left = axis.x(from);
  return { left, width: Math.max(1, axis.x(hold.claims.at(-1)?.until ?? until) - left) };
}

function drawHold(hold: Hold, axis: Axis, palette: Palette, y: number): string {
  const { left, width } = claimed(hold, axis);
  const shape = { y, height: BAR, 'stroke-width': 0.8, stroke: '#444' };
  const parts = [
    title(
      `${hold.name}: ${hold.process}, owner ${hold.owner}, token ${hold.token}${hold.lostReason === undefined ? '' : `, lost: ${hold.lostReason}`}`,
    ),
    element('rect', { x: left, width, fill: palette.of(hold.process), ...shape }),
  ];
  if (hold.diedAt !== undefined) {
    const tail = { x: left + width, width: Math.max(0, axis.x(extent(hold).until) - left - width) };
    parts.push(element('rect', { ...tail, ...shape, fill: 'url(#dead)', 'stroke-dasharray': '3 2' }));
  }
  if (hold.lostAt !== undefined && axis.shows({ from: hold.lostAt - 1, until: hold.lostAt + 1 })) {
    parts.push(drawCross(axis.x(hold.lostAt), y + BAR / 2));
  }
  return element('g', {}, parts.join(''));
}

/** On two lines where the bar is wide enough, upright where it is narrow, nothing where it is a sliver. */
function drawLabel(hold: Hold, axis: Axis, token: string, y: number): string {
  const { left, width } = claimed(hold, axis);
  const who = `${hold.process} ${hold.owner.slice(-4)}`;
  const middle = left + width / 2;
  if (width >= Math.max(who.length, token.length + 1) * SMALL * 0.62 + 4) {
    const centred = { class: 'small', 'text-anchor': 'middle' };
    const centre = y + BAR / 2;
    return text(middle, centre - 3, who, centred) + text(middle, centre + 10, `+${token}`, centred);
  }
  if (width < SMALL) return '';
  const lines = width >= 2 * SMALL + 4 ? [who, `+${token}`] : [`${hold.process} +${token}`];
  return lines
    .map((line, index) => {
      const x = middle + SMALL * 0.36 + (index - (lines.length - 1) / 2) * (SMALL + 1);
      const foot = y + BAR - 3;
      return text(x, foot, fit(line, BAR - 6), { class: 'small', transform: `rotate(-90 ${x} ${foot})` });
    })
    .join('');
}

function fit(line: string, room: number): string {
  const characters = Math.floor(room / (SMALL * 0.56));
  return line.length <= characters ? line : `${line.slice(0, characters - 1)}…`;
}

function drawCross(x: number, y: number): string {
  return element('path', {
    d: `M${x - 4} ${y - 4}L${x + 4} ${y + 4}M${x - 4} ${y + 4}L${x + 4} ${y - 4}`,
    stroke: '#c00000',
    'stroke-width': 2,
  });
}

/** The times at which two claims of one name overlap. */
function clashes(holds: readonly Hold[]): Span[] {
  const claims = holds
    .flatMap((hold) => hold.claims.map((claim) => ({ hold, ...claim })))
    .sort((a, b) => a.from - b.from);
  const found: Span[] = [];
  let [latest] = claims;
  for (const claim of claims) {
    if (latest === undefined) break;
    if (latest.hold !== claim.hold && claim.from < latest.until) {
      found.push({ from: claim.from, until: Math.min(latest.until, claim.until) });
    }
    if (claim.until > latest.until) latest = claim;
  }
  return found;
}

function drawClash(clash: Span, axis: Axis, top: number, height: number): string {
  if (!axis.shows(clash)) return '';
  const left = axis.x(clash.from);
  const width = Math.max(2, axis.x(clash.until) - left);
  const box = { x: left, y: top - 3, width, height: height + 6 };
  return element('rect', { ...box, fill: 'url(#clash)', stroke: '#c00000', 'stroke-width': 1.6 });
}

/** Puts the faults' labels into rows in which they do not cover one another. */
function placeLabels(faults: readonly FaultSpan[], axis: Axis): { fault: FaultSpan; row: number }[] {
  const extents = faults.map((fault) => {
    const from = labelX(fault, axis);
    return { fault, from, until: from + labelOf(fault).length * SMALL * 0.64 + 8 };
  });
  return lanes(extents, (label) => label).flatMap((row, index) =>
    row.map(({ fault }) => ({ fault, row: index })),
  );
}

function labelOf({ fault, touches }: FaultSpan): string {
  return touches === undefined ? fault : `${fault} ${touches.join(' ')}`;
}

function labelX(fault: FaultSpan, axis: Axis): number {
  const width = labelOf(fault).length * SMALL * 0.64;
  return Math.min(axis.x(fault.injectedAt), WIDTH - RIGHT - width);
}

function drawFault(fault: FaultSpan, axis: Axis, y: { label: number; top: number; bottom: number }): string {
  const left = axis.x(fault.injectedAt);
  const right = axis.x(fault.healedAt);
  const line = (x: number, dash?: string): string =>
    element('line', {
      x1: x,
      x2: x,
      y1: y.label - 2,
      y2: y.bottom,
      stroke: '#b03a00',
      'stroke-dasharray': dash,
    });
  const height = y.bottom - y.top;
  return element(
    'g',
    {},
    [
      element('rect', {
        x: left,
        y: y.top,
        width: Math.max(0, right - left),
        height,
        fill: '#ffe3c8',
        opacity: 0.75,
      }),
      line(left),
      ...(right - left > 3 ? [line(right, '4 3')] : []),
      text(labelX(fault, axis) + 2, y.label, labelOf(fault), { class: 'small', 'font-weight': 'bold' }),
    ].join(''),
  );
}

function drawTicks(story: Story, axis: Axis, top: number, bottom: number): string {
  const { from, until } = axis.panel;
  const step = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000].find(
    (candidate) => (until - from) / candidate <= 14,
  );
  if (step === undefined) return '';
  const parts: string[] = [];
  for (let tick = Math.ceil((from - story.from) / step) * step; tick + story.from <= until; tick += step) {
    const x = axis.x(tick + story.from);
    parts.push(element('line', { x1: x, x2: x, y1: top, y2: bottom + 4, stroke: '#000', opacity: 0.18 }));
    const label = `${(tick / 1000).toFixed(step < 100 ? 2 : step < 1000 ? 1 : 0)} s`;
    parts.push(text(x, bottom + 15, label, { class: 'small', 'text-anchor': 'middle' }));
  }
  return element('g', {}, parts.join(''));
}

function drawLegend(palette: Palette, top: number): Drawn {
  const parts: string[] = [];
  let x = 16;
  let y = top;
  const entry = (sample: string, label: string): void => {
    const width = 34 + label.length * 6.4;
    if (x + width > WIDTH - RIGHT) {
      x = 16;
      y += 22;
    }
    parts.push(
      element('g', { transform: `translate(${x} ${y})` }, sample + text(26, 11, label, { class: 'small' })),
    );
    x += width;
  };
  const box = { x: 0, y: 1, width: 20, height: 12, stroke: '#444', 'stroke-width': 0.8 };
  for (const [process, fill] of palette.entries) entry(element('rect', { ...box, fill }), process);
  x = 16;
  y += 22;
  entry(element('rect', { ...box, fill: '#fff' }), 'held: process, end of owner, token (+ above the first)');
  entry(
    element('rect', { ...box, fill: 'url(#dead)', 'stroke-dasharray': '3 2' }),
    'killed: its ttl goes on',
  );
  entry(drawCross(10, 7), 'loss signalled');
  entry(element('rect', { ...box, stroke: '#b03a00', fill: '#ffe3c8' }), 'fault, until healed');
  entry(element('rect', { ...box, stroke: '#c00000', fill: 'url(#clash)' }), 'two holders');
  return { markup: element('g', {}, parts.join('\n')), bottom: y + 26 };
}

/** A colour for each process; one that was started again keeps that of its predecessor. */
class Palette {
  readonly entries: readonly (readonly [string, string])[];
  readonly #colours: ReadonlyMap<string, string>;

  constructor(story: Story) {
    const bases = [...new Set(story.holds.map(({ process }) => baseOf(process)))].sort();
    this.entries = bases.map((base, index) => [base, COLOURS[index % COLOURS.length] ?? '#fff']);
    this.#colours = new Map(this.entries);
  }

  of(process: string): string {
    return this.#colours.get(baseOf(process)) ?? '#fff';
  }
}

function baseOf(process: string): string {
  return process.split('#')[0] ?? process;
}

function shortNumber(token: bigint): string {
  const digits = String(token);
  return digits.length <= 8 ? digits : `…${digits.slice(-7)}`;
}

function background(height: number): string {
  return element('rect', { x: 0, y: 0, width: WIDTH, height, fill: '#fff' });
}

const PATTERNS = element('defs', {}, [hatch('dead', '#999', 5), hatch('clash', '#c00000', 6)].join(''));

function hatch(id: string, stroke: string, size: number): string {
  const tile = {
    id,
    width: size,
    height: size,
    patternUnits: 'userSpaceOnUse',
    patternTransform: 'rotate(45)',
  };
  return element(
    'pattern',
    tile,
    element('line', { x1: 0, y1: 0, x2: 0, y2: size, stroke, 'stroke-width': 1.4 }),
  );
}
