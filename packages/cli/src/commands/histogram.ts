import { fineSpan } from '../text.js';
import { percentiles, type Series } from './bench.js';

/** How many times fell between two bounds, in ms. */
interface Bin {
  readonly upTo: number;
  readonly count: number;
}

const BAR = 40;

/** Bins that double: latencies spread over orders of magnitude. Empty ones at either end are left out. */
export function binned(times: readonly number[]): readonly Bin[] {
  const bins: Bin[] = [];
  let from = 0;
  for (let upTo = 1 / 16; from < times.length; upTo *= 2) {
    const next = times.findIndex((time, index) => index >= from && time > upTo);
    const end = next < 0 ? times.length : next;
    if (end > from || bins.length > 0) bins.push({ upTo, count: end - from });
    from = end;
  }
  return bins;
}

/** A series as a title, its figures, and a bar for each bin. */
export function histogramText(series: Series): string {
  const bins = binned(series.times);
  const most = Math.max(1, ...bins.map(({ count }) => count));
  const rows = bins.map(({ upTo, count }) => {
    const bar = '█'.repeat(Math.ceil((count / most) * BAR));
    return `  ≤ ${fineSpan(upTo).padStart(7)}  ${bar} ${count}`;
  });
  return [series.title, `  ${figures(series)}`, ...rows].join('\n');
}

function figures({ perSecond, times }: Series): string {
  const { p50, p95, p99 } = percentiles(times);
  return `${Math.round(perSecond)} a second; half within ${fineSpan(p50)}, 95 % within ${fineSpan(p95)}, 99 % within ${fineSpan(p99)}`;
}

/** All series as one picture. */
export function histogramSvg(all: readonly Series[], backend: string): string {
  const width = 640;
  const height = 190;
  const charts = all.map((series, index) => chart(series, index * height + 30, width, height));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${all.length * height + 40}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    `<text x="20" y="20" font-size="14" font-weight="bold">holdfast bench: ${escaped(backend)}</text>`,
    ...charts,
    '</svg>\n',
  ].join('\n');
}

function chart(series: Series, top: number, width: number, height: number): string {
  const bins = binned(series.times);
  const most = Math.max(1, ...bins.map(({ count }) => count));
  const step = (width - 40) / Math.max(1, bins.length);
  const floor = top + height - 30;
  const bars = bins.map(({ upTo, count }, index) => {
    const tall = Math.ceil((count / most) * (height - 100));
    const x = 20 + index * step;
    return [
      `<rect x="${x.toFixed(1)}" y="${floor - tall}" width="${(step * 0.9).toFixed(1)}" height="${tall}" fill="#3b82c4"/>`,
      `<text x="${x.toFixed(1)}" y="${floor - tall - 3}" font-size="9">${count === 0 ? '' : count}</text>`,
      `<text x="${x.toFixed(1)}" y="${floor + 14}" font-size="9">≤ ${fineSpan(upTo)}</text>`,
    ].join('');
  });
  return [
    `<text x="20" y="${top + 16}" font-weight="bold">${escaped(series.title)}</text>`,
    `<text x="20" y="${top + 32}">${escaped(figures(series))}</text>`,
    ...bars,
  ].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
