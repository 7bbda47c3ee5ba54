import { defineConfig } from 'vitest/config';

// One process for the whole repository: `vitest run --project redis` runs one package's tests.
const packages = [
  'core',
  'conformance',
  'sql',
  'redis',
  'etcd',
  'zookeeper',
  'cli',
  'otel',
  'nest',
  'testbed',
  'bench',
];

export default defineConfig({
  test: {
    // Tests wait far more than they compute: for ttls to end, servers to come back.
    maxWorkers: 4,
    projects: packages.map((name) => ({
      test: {
        name,
        root: `packages/${name}`,
        include: ['src/**/*.test.ts'],
        environment: 'node',
        pool: 'forks',
        testTimeout: 30_000,
        hookTimeout: 60_000,
      },
    })),
  },
});
