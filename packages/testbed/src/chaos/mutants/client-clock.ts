import mysql from 'mysql2';
import pg from 'pg';
import type { Mutate } from './mutant.js';

/** How the statements of @holdfast/sql ask for the database's time. */
const NOW = {
  postgres: '(extract(epoch from clock_timestamp()) * 1000000)::bigint',
  mysql: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
};

/** Every statement to a database server goes by the client's clock, as a lock that counts with `Date.now()` does. */
export const mutate: Mutate = (backend) => {
  spoil(pg.Client.prototype, 'query', ([query, ...rest]) => {
    const { text, values } = query as { readonly text?: string; readonly values?: readonly unknown[] };
    if (text === undefined || !text.includes(NOW.postgres)) return undefined;
    // Without its name: one that is prepared would keep the time at which it was.
    return [{ text: text.replaceAll(NOW.postgres, `(${micros()})::bigint`), values }, ...rest];
  });
  for (const method of ['execute', 'query']) {
    spoil(
      (mysql as unknown as { Connection: { prototype: object } }).Connection.prototype,
      method,
      ([sql, ...rest]) => {
        if (typeof sql !== 'string' || !sql.includes(NOW.mysql)) return undefined;
        return [sql.replaceAll(NOW.mysql, micros()), ...rest];
      },
    );
  }
  return backend;
};

function micros(): string {
  return String(Date.now() * 1000);
}

function spoil(
  prototype: object,
  method: string,
  change: (given: readonly unknown[]) => readonly unknown[] | undefined,
): void {
  const sound = Reflect.get(prototype, method) as (...given: readonly unknown[]) => unknown;
  Reflect.set(prototype, method, function spoiled(this: unknown, ...given: readonly unknown[]) {
    return sound.apply(this, [...(change(given) ?? given)]);
  });
}
