import type { ServerName } from './handle.js';

/**
 * Whether `HOLDFAST_TEST_SKIP` names this server or its family: `redis` covers `redis-cluster`. Nothing else skips: a
 * server that cannot be had fails its tests by name.
 */
export function skipped(server: ServerName, environment: NodeJS.ProcessEnv = process.env): boolean {
  const names = (environment.HOLDFAST_TEST_SKIP ?? '').split(/[\s,]+/).filter((name) => name !== '');
  return names.some((name) => server === name || server.startsWith(`${name}-`));
}
