import type { BackendModule, LockBackend } from '@holdfast/core';

/** Spoils a backend: keeps its interface and breaks one of its promises. */
export type Mutate = (backend: LockBackend) => LockBackend;

/** What a mutant's module exports. */
export interface MutantModule {
  readonly mutate: Mutate;
}

/** The package behind a URL's scheme. */
const PACKAGES: Readonly<Record<string, string>> = {
  sqlite: '@holdfast/sql',
  postgres: '@holdfast/sql',
  mariadb: '@holdfast/sql',
  mysql: '@holdfast/sql',
  redis: '@holdfast/redis',
  etcd: '@holdfast/etcd',
  zookeeper: '@holdfast/zookeeper',
};

/** The backend of a URL, spoiled: for `connect(url, { backends })`. */
export async function mutantModules(url: string, mutant: string): Promise<readonly BackendModule[]> {
  const scheme = /^[a-z]+/.exec(url)?.[0] ?? '';
  const packageName = PACKAGES[scheme];
  if (packageName === undefined) throw new Error(`there are no mutants of ${scheme}: backends`);
  const sound = (await import(packageName)) as BackendModule;
  const { mutate } = (await import(mutant)) as MutantModule;
  return [{ ...sound, createBackend: async (options) => mutate(await sound.createBackend(options)) }];
}

/** A backend that passes every call on, for a mutant to override what it spoils. */
export function passOn(backend: LockBackend, spoiled: Partial<LockBackend>): LockBackend {
  return new Proxy(backend, {
    get(target, property) {
      const own: unknown = Reflect.get(spoiled, property);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, property);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
