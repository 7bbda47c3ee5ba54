import { connect, type Locks } from '@holdfast/core';
import { sql } from '@holdfast/sql';
import type { ConnectionFlags } from '../connection.js';
import { UsageError } from '../exit.js';
import type { Output } from '../output.js';

/** Makes or updates the tables of an SQL backend, also where the configuration forbids it to the application. */
export async function migrate({ url, config }: ConnectionFlags, output: Output): Promise<void> {
  if (url !== undefined && config !== undefined) throw new UsageError('give --url or --config, not both');
  let migrated = false;
  const migrating: typeof sql = {
    ...sql,
    createBackend: (options) => {
      migrated = true;
      return sql.createBackend({ ...options, migrate: true });
    },
  };
  const backends = { backends: [migrating] };
  const locks: Locks = await connect(
    url,
    config === undefined ? backends : { ...backends, configFile: config },
  );
  await locks.close();
  output.out(
    migrated ? 'the tables are there and up to date' : `${locks.backend.name} keeps no tables: nothing to do`,
  );
}
