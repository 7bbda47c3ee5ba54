import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { warn } from '#platform';
import { ConfigError } from '../errors.js';
import type { FoundConfig } from './config.js';
import { sqliteUrl } from './url.js';

let warned = false;

/**
 * The default of a process without any configuration: a SQLite file in the user's state directory, which serves that
 * user's processes on this machine. Refused where there are other machines.
 *
 * @throws ConfigError in production, where every host would get a lock of its own
 */
export async function embeddedDefault(): Promise<FoundConfig> {
  const sign = productionSign();
  if (sign !== undefined) {
    throw new ConfigError(
      `no configuration was found, and ${sign} is set: the default, a file on this machine, would give every host ` +
        'a lock of its own. Set HOLDFAST_URL, or HOLDFAST_CONFIG, or add a holdfast.config file',
    );
  }
  const folder = stateFolder();
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new ConfigError(`no configuration was found, and ${folder} for the default cannot be made`, {
      cause,
    });
  }
  const file = join(folder, 'locks.db');
  if (!warned) {
    warned = true;
    warn(
      `no configuration was found: locks are kept in ${file}, which serves this user's processes on this machine ` +
        'alone. Set HOLDFAST_URL, or add a holdfast.config file, to choose',
    );
  }
  return { value: sqliteUrl(file), origin: { label: 'the embedded default' } };
}

function productionSign(): string | undefined {
  if (process.env.NODE_ENV === 'production') return 'NODE_ENV=production';
  return process.env.KUBERNETES_SERVICE_HOST ? 'KUBERNETES_SERVICE_HOST' : undefined;
}

/** Where programs keep what should outlive a restart, on each platform. */
function stateFolder(): string {
  const { XDG_STATE_HOME: state, LOCALAPPDATA: local } = process.env;
  // The XDG specification says that a relative path is to be ignored.
  if (state?.startsWith('/')) return join(state, 'holdfast');
  if (process.platform === 'win32' && local) return join(local, 'holdfast');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'holdfast');
  return join(homedir(), '.local', 'state', 'holdfast');
}
