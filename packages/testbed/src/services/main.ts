/** `pnpm services up [names…]`, `down`, `status`: the servers of the tests, for people. */
import { fork } from 'node:child_process';
import { rmdir } from 'node:fs/promises';
import { Command } from 'commander';
import { findEngine } from '../servers/docker.js';
import { variableOf } from '../servers/environment.js';
import type { ServerName } from '../servers/handle.js';
import { needPrograms } from '../servers/install.js';
import { skipped } from '../servers/skip.js';
import { askKeepers, type KeeperReport, keeperFolder, type RunningServer } from './control.js';
import { SERVERS } from './starters.js';

const program = new Command('services').description(
  'Starts and stops the servers of the tests. Prints the variables to export: eval "$(pnpm -s services up)"',
);

program
  .command('up')
  .argument('[names...]', `of ${SERVERS.join(', ')}; default all that this machine can run`)
  .description('starts servers, those that do not run yet, and prints their URLs')
  .action(up);

program.command('down').description('stops every server and removes its data').action(down);

program.command('status').description('prints the URLs of the servers that run').action(status);

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function up(names: readonly string[]): Promise<void> {
  const wanted = names.length === 0 ? await everything() : names.map(serverName);
  const already = await askKeepers('status');
  const missing = wanted.filter((name) => !already.some(({ server }) => server === name));
  // Here and not in the keeper, so that people see what is being installed.
  if ((await findEngine()) === undefined) for (const name of missing) needPrograms(name);
  const started = missing.length === 0 ? [] : await startKeeper(missing);
  print([...already, ...started]);
}

async function down(): Promise<void> {
  const stopped = await askKeepers('stop');
  await rmdir(keeperFolder()).catch(() => undefined);
  console.error(stopped.length === 0 ? 'No server was running.' : `Stopped ${list(stopped)}.`);
}

async function status(): Promise<void> {
  const running = await askKeepers('status');
  await rmdir(keeperFolder()).catch(() => undefined);
  if (running.length === 0) console.error('No server is running.');
  print(running);
}

async function everything(): Promise<ServerName[]> {
  const wanted = SERVERS.filter((name) => !skipped(name));
  if ((await findEngine()) !== undefined || !wanted.includes('mysql')) return wanted;
  console.error('MySQL is left out: it runs in Docker only, and no engine answers.');
  return wanted.filter((name) => name !== 'mysql');
}

function serverName(name: string): ServerName {
  const found = SERVERS.find((server) => server === name);
  if (found === undefined) throw new Error(`There is no server ${name}; known are ${SERVERS.join(', ')}.`);
  return found;
}

async function startKeeper(names: readonly ServerName[]): Promise<readonly RunningServer[]> {
  // It must not hold our output open: whoever reads that waits for its end.
  const keeper = fork(new URL('./keeper.js', import.meta.url), [...names], {
    detached: true,
    stdio: 'ignore',
  });
  const report = await new Promise<KeeperReport>((resolve) => {
    keeper.once('message', resolve);
    keeper.once('exit', (code) =>
      resolve({ type: 'failed', message: `The keeper ended with code ${code}.` }),
    );
  });
  keeper.unref();
  if (report.type === 'failed') throw new Error(report.message);
  return report.servers;
}

function print(servers: readonly RunningServer[]): void {
  for (const { server, url } of servers) console.log(`export ${variableOf(server)}='${url}'`);
}

function list(servers: readonly RunningServer[]): string {
  return servers.map(({ server }) => server).join(', ');
}
