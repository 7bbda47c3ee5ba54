import type { KnownBackend } from './config.js';

/** What core knows of a backend that it does not contain. */
export interface KnownPackage {
  readonly packageName: string;
  /** The URL schemes of its section. */
  readonly schemes: readonly string[];
}

const sql = (...schemes: string[]): KnownPackage => ({ packageName: '@holdfast/sql', schemes });

/** The packages that bring the backends of the specification, by the backend's name in a config. */
export const KNOWN_PACKAGES: Readonly<Record<Exclude<KnownBackend, 'memory'>, KnownPackage>> = {
  sqlite: sql('sqlite'),
  postgres: sql('postgres', 'postgresql'),
  mysql: sql('mysql'),
  mariadb: sql('mariadb'),
  redis: {
    packageName: '@holdfast/redis',
    schemes: ['', '+sentinel', '+cluster', '+quorum'].flatMap((kind) => [`redis${kind}`, `rediss${kind}`]),
  },
  etcd: { packageName: '@holdfast/etcd', schemes: ['etcd', 'etcds'] },
  zookeeper: { packageName: '@holdfast/zookeeper', schemes: ['zookeeper'] },
};

/** Every backend's name in a config. */
export const BACKEND_NAMES: readonly string[] = ['memory', ...Object.keys(KNOWN_PACKAGES)];

/** Whether a key of a config can be the section of a backend: of one of ours, or under the name of its package. */
export function isSection(key: string): boolean {
  return BACKEND_NAMES.includes(key) || /^(@[a-z0-9~-][a-z0-9._~-]*\/|holdfast-)[a-z0-9._~-]+$/.test(key);
}

/** Every URL scheme that `connect()` knows by itself. */
export const KNOWN_SCHEMES: readonly string[] = [
  'memory',
  ...Object.values(KNOWN_PACKAGES).flatMap(({ schemes }) => schemes),
];

/** The backend's name for a URL scheme. */
export function backendOfScheme(scheme: string): string | undefined {
  if (scheme === 'memory') return 'memory';
  return Object.entries(KNOWN_PACKAGES).find(([, { schemes }]) => schemes.includes(scheme))?.[0];
}

/** The package of a backend of ours, by its name in a config. */
export function knownPackage(name: string): KnownPackage | undefined {
  return Object.entries(KNOWN_PACKAGES).find(([known]) => known === name)?.[1];
}
