/**
 * Runs servers for people until `pnpm services down`: a process of its own, since the command that starts it ends.
 * Its arguments are the servers' names.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, rmdir } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { ServerHandle, ServerName } from '../servers/handle.js';
import { endSupervisor, supervisor } from '../supervisor/supervisor.js';
import { type KeeperReport, keeperFolder, type Question, type RunningServer } from './control.js';
import { startServers } from './starters.js';

let handles: readonly ServerHandle[] = [];
const socketPath = join(keeperFolder(), randomBytes(6).toString('hex'));
const server = createServer({ allowHalfOpen: true }, (socket) => serve(socket));

// The command was interrupted while we start: nobody will know that we run.
process.once('disconnect', () => process.exit(1));
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => void stop());

try {
  handles = await startServers(process.argv.slice(2) as ServerName[]);
  supervisor().tell({ type: 'own', path: socketPath });
  await mkdir(keeperFolder(), { recursive: true, mode: 0o700 });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socketPath, resolve));
  await chmod(socketPath, 0o600);
  process.removeAllListeners('disconnect');
  report({ type: 'up', servers: running() });
} catch (error) {
  report({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
  await endSupervisor();
}

function serve(socket: Socket): void {
  let text = '';
  socket.on('error', () => undefined);
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.once('end', () => {
    const question = text as Question;
    socket.write(JSON.stringify(running()));
    // After `stop` the connection closes as this process ends: so the other side sees when all is done.
    if (question === 'stop') void stop();
    else socket.end();
  });
}

async function stop(): Promise<void> {
  server.close();
  await Promise.allSettled(handles.map((handle) => handle.stop()));
  await endSupervisor();
  // Only if it was the last keeper.
  await rmdir(keeperFolder()).catch(() => undefined);
  process.exit(0);
}

function running(): RunningServer[] {
  return handles.map(({ server, provider, url }) => ({ server, provider, url }));
}

function report(message: KeeperReport): void {
  process.send?.(message, () => process.disconnect());
}
