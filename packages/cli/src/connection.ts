import { connect, isHoldfastError, type Locks, type MissingPackageError } from '@holdfast/core';
import { UsageError } from './exit.js';

/** The options by which every command chooses the backend. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly config?: string;
}

/**
 * The locks that `--url`, `--config` or the environment name, as for `connect()`.
 *
 * @throws UsageError, ConfigError, MissingPackageError, BackendError
 */
export async function openLocks({ url, config }: ConnectionFlags): Promise<Locks> {
  if (url !== undefined && config !== undefined) throw new UsageError('give --url or --config, not both');
  const options = config === undefined ? {} : { configFile: config };
  try {
    return await connect(url, options);
  } catch (error) {
    if (!isMissing(error, '@holdfast/sql')) throw error;
    // The program brings this one along, where core, in a strict layout, does not see it.
    const { sql } = await import('@holdfast/sql');
    return connect(url, { ...options, backends: [sql] });
  }
}

function isMissing(error: unknown, packageName: string): boolean {
  return (
    isHoldfastError(error, 'MISSING_PACKAGE') && (error as MissingPackageError).packageName === packageName
  );
}
