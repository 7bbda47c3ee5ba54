import { svg } from '@holdfast/testbed';
import { type BackendResults, type Figure, formatNumber, SCENARIOS, type Scenario } from './results.js';
import type { Backend } from './subject.js';

export type Theme = 'light' | 'dark';

/** What is plotted, and which way is better. */
const PLOTTED: Partial<Record<Scenario, { readonly title: string; readonly better: 'more' | 'less' }>> = {
  sequential: { title: 'Acquire + release, one after another', better: 'more' },
  parallel: { title: 'Acquire + release, 100 in parallel', better: 'more' },
  'contended grants': { title: 'Grants under contention', better: 'more' },
  'contended hand-over': { title: 'Release to the next grant', better: 'less' },
  'contended spread': { title: 'Grants of a waiter, most over least', better: 'less' },
  'recovery from a killed holder, ttl 2 s': { title: 'Recovery from a killed holder', better: 'less' },
};

// Narrow, so that the text stays readable on a telephone.
const WIDTH = 440;
const MARGIN = 12;
const BAR = 18;
const ROW = 40;
const VALUE = 78;
const PLOT = WIDTH - 2 * MARGIN - VALUE;

const COLOURS: Readonly<
  Record<Theme, Readonly<Record<Figure['kind'] | 'back' | 'text' | 'soft' | 'line', string>>>
> = {
  light: {
    back: '#ffffff',
    text: '#1f2328',
    soft: '#59636e',
    line: '#d1d9e0',
    holdfast: '#0969da',
    floor: '#8c959f',
    peer: '#d4a72c',
  },
  dark: {
    back: '#1b1b1f',
    text: '#f0f6fc',
    soft: '#9198a1',
    line: '#3d444d',
    holdfast: '#4493f8',
    floor: '#6e7681',
    peer: '#d29922',
  },
};

/**
 * Draws the figures of one backend: a group of bars for each scenario, a bar for each subject, the median with the
 * spread of the rounds on it.
 */
export function plot(backend: Backend, { figures }: BackendResults, theme: Theme): string {
  const colour = COLOURS[theme];
  const parts: string[] = [];
  let y = MARGIN;
  for (const scenario of SCENARIOS) {
    const how = PLOTTED[scenario];
    const shown = figures.filter((figure) => figure.scenario === scenario);
    if (how === undefined || shown.length === 0) continue;
    parts.push(
      svg.text(MARGIN, y + 15, how.title, { fill: colour.text, 'font-size': 15, 'font-weight': 'bold' }),
      svg.text(MARGIN, y + 32, `${shown[0]?.unit}, ${how.better} is better`, { fill: colour.soft }),
    );
    y += 40;
    const most = Math.max(...shown.map(({ max }) => max));
    for (const figure of shown) {
      parts.push(bar(figure, most, y, theme));
      y += ROW;
    }
    y += 14;
  }
  const label = `${backend}: what was measured`;
  const background = svg.element('rect', { width: WIDTH, height: y, rx: 6, fill: colour.back });
  return `${svg.element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width: WIDTH,
      height: y,
      viewBox: `0 0 ${WIDTH} ${y}`,
      role: 'img',
      'font-family': 'system-ui, Helvetica, Arial, sans-serif',
      'font-size': 13,
    },
    [svg.title(label), background, ...parts].join('\n'),
  )}\n`;
}

function bar(figure: Figure, most: number, y: number, theme: Theme): string {
  const colour = COLOURS[theme];
  const x = (value: number): number => MARGIN + (most > 0 ? value / most : 0) * PLOT;
  const middle = y + 17 + BAR / 2;
  const whisker = (from: number, to: number): string =>
    svg.element('line', { x1: x(from), x2: x(to), y1: middle, y2: middle, stroke: colour.text });
  return svg.element(
    'g',
    {},
    [
      svg.title(
        `${figure.subject}: ${formatNumber(figure.min)} to ${formatNumber(figure.max)} ${figure.unit}`,
      ),
      svg.text(MARGIN, y + 12, figure.subject, { fill: colour.text }),
      svg.element('rect', {
        x: MARGIN,
        y: y + 17,
        width: Math.max(1, x(figure.median) - MARGIN),
        height: BAR,
        fill: colour[figure.kind],
      }),
      whisker(figure.min, figure.max),
      svg.text(WIDTH - MARGIN, middle + 5, formatNumber(figure.median), {
        fill: colour.text,
        'text-anchor': 'end',
      }),
    ].join(''),
  );
}
