import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';

/** Where a process can be while it takes a lock and gives it back. */
export const LAYERS = [
  'waiting for the server',
  'Holdfast, core',
  'Holdfast, backend',
  'client library',
  'Node.js and system calls',
  'garbage collection',
] as const;
export type Layer = (typeof LAYERS)[number];

/** µs that one acquire + release spends in each layer. */
export type Profile = Readonly<Record<Layer, number>>;

/** µs between two looks at where the process is. */
const INTERVAL = 200;

/**
 * Samples the process while `work` runs.
 *
 * @param work resolves to the number of pairs that it did
 */
export async function profile(work: () => Promise<number>): Promise<Profile> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: INTERVAL });
    await session.post('Profiler.start');
    const pairs = await work();
    const { profile: sampled } = await session.post('Profiler.stop');
    return perPair(sampled, pairs);
  } finally {
    session.disconnect();
  }
}

function perPair({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile, pairs: number): Profile {
  const layers = new Map(nodes.map(({ id, callFrame }) => [id, layerOf(callFrame)]));
  const spent = Object.fromEntries(LAYERS.map((layer) => [layer, 0])) as Record<Layer, number>;
  for (const [index, id] of samples.entries()) {
    const layer = layers.get(id);
    if (layer !== undefined) spent[layer] += (timeDeltas[index] ?? 0) / pairs;
  }
  return spent;
}

/** By the file in which a function stands; what has none is the machine's. */
export function layerOf({
  functionName,
  url,
}: Pick<Profiler.ProfileNode['callFrame'], 'functionName' | 'url'>): Layer {
  if (functionName === '(idle)') return 'waiting for the server';
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (url.includes('/node_modules/')) return 'client library';
  if (url.includes('/packages/core/')) return 'Holdfast, core';
  if (/\/packages\/(redis|sql|etcd|zookeeper)\//.test(url)) return 'Holdfast, backend';
  return 'Node.js and system calls';
}
