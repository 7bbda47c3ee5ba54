import { mkdir, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { ProviderName, ServerName } from '../servers/handle.js';

/** A server that a keeper runs. */
export interface RunningServer {
  readonly server: ServerName;
  readonly provider: ProviderName;
  readonly url: string;
}

/** What a keeper tells the command that started it. */
export type KeeperReport =
  | { readonly type: 'up'; readonly servers: readonly RunningServer[] }
  | { readonly type: 'failed'; readonly message: string };

/** What a keeper is asked through its socket: to say what it runs, or to stop and let go of the connection. */
export type Question = 'status' | 'stop';

/** Holds a socket for each keeper that runs: whoever answers there is alive, so nothing has to be remembered. */
export function keeperFolder(): string {
  return join(tmpdir(), `holdfast-services-${userInfo().uid}`);
}

export async function keeperSockets(): Promise<string[]> {
  await mkdir(keeperFolder(), { recursive: true, mode: 0o700 });
  return (await readdir(keeperFolder())).map((name) => join(keeperFolder(), name));
}

/** Asks every keeper; a socket at which nobody answers is left from a crash and removed. */
export async function askKeepers(question: Question): Promise<RunningServer[]> {
  const answers = await Promise.all(
    (await keeperSockets()).map(async (socket) => {
      try {
        return await ask(socket, question);
      } catch {
        await rm(socket, { force: true });
        return [];
      }
    }),
  );
  return answers.flat();
}

/** Resolves with the keeper's answer when it has closed the connection: after `stop`, when it has gone. */
function ask(path: string, question: Question): Promise<RunningServer[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.end(question));
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(text === '' ? [] : (JSON.parse(text) as RunningServer[])));
  });
}
