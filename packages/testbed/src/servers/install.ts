// The script runs on its own too, before anything is installed, and so is no part of this package.
import { installServers, lookUp, missing } from '../../../../scripts/install-servers.mjs';
import type { ServerName } from './handle.js';

/** Where a program of this machine is. @throws Error when it has none of that name */
export function findProgram(name: string): string {
  const path = lookUp(name);
  if (path === undefined) throw new Error(`This machine has no ${name}.`);
  return path;
}

/** Whether this machine has a program of that name. */
export function hasProgram(name: string): boolean {
  return lookUp(name) !== undefined;
}

/** Where libfaketime is, installed if need be. */
export function findFaketime(): string {
  installServers(['faketime']);
  return findProgram('libfaketime.so.1');
}

/**
 * Sees to it that this machine has the server's programs, installed with apt where it may.
 *
 * @throws Error naming the server and the ways to get it
 */
export function needPrograms(server: ServerName): void {
  if (server === 'mysql')
    throw new Error(
      'MySQL can be had in two ways: start a Docker engine, or name a server in HOLDFAST_TEST_MYSQL_URL. ' +
        'To leave its tests out say HOLDFAST_TEST_SKIP=mysql.',
    );
  const family = server.split('-')[0] ?? server;
  if (missing([family]).length > 0) installServers([family]);
}
