/** The tables of one installation. */
export interface Tables {
  readonly locks: string;
  readonly waiters: string;
  readonly schema: string;
}

/** The names of the tables that begin with `table`, which needs no quoting. */
export function tablesOf(table: string): Tables {
  return { locks: `${table}_locks`, waiters: `${table}_waiters`, schema: `${table}_schema` };
}

/**
 * The statements that bring the schema from each version to the next. Never change one that has been published: add.
 * Each can run again where an earlier run broke off.
 */
export type Migrations = readonly ((tables: Tables) => readonly string[])[];
