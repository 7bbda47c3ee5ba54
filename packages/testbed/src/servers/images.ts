import type { ServerName } from './handle.js';

/** What a container of each kind of server is made of, unless `HOLDFAST_TEST_<KIND>_IMAGE` says otherwise. */
const IMAGES = {
  redis: 'redis:7.4-alpine',
  etcd: 'quay.io/coreos/etcd:v3.5.17',
  zookeeper: 'zookeeper:3.9',
  postgres: 'postgres:17-alpine',
  pgbouncer: 'edoburu/pgbouncer:v1.24.1-p1',
  mariadb: 'mariadb:11.4',
  mysql: 'mysql:8.4',
} as const;

type Kind = keyof typeof IMAGES;

export function imageOf(server: ServerName): string {
  const kind = server.split('-')[0] as Kind;
  return process.env[`HOLDFAST_TEST_${kind.toUpperCase()}_IMAGE`] ?? IMAGES[kind];
}
