/** The browser's stand-in for `config/resolve.ts`: there are no files, no environment and no servers' clients there. */
import { UnsupportedError } from '../errors.js';

export async function resolveConnection(): Promise<never> {
  throw new UnsupportedError('connect() needs Node.js; in a browser use createLocks(memoryBackend())');
}
