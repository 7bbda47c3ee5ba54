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
  'docs',
];

/**
 * Suites against whole ensembles and against database servers take long and want a machine of their own:
 * `npm run test:ensembles` runs them, apart from what every change must pass.
 */
const ensembles = [
  'packages/etcd/src/{cluster,conformance/*}.test.ts',
  'packages/zookeeper/src/{conformance,ensemble,cases}.test.ts',
  'packages/redis/src/{cluster,sentinel}.test.ts',
  'packages/redis/src/conformance/{cluster,sentinel,quorum,quorum-of-five,ioredis-5}.test.ts',
  'packages/sql/src/{servers,processes}.test.ts',
  'packages/sql/src/conformance/{mariadb,pgbouncer,postgres}.test.ts',
  'packages/cli/src/backends.test.ts',
];
const wanted = process.env.HOLDFAST_TEST_ENSEMBLES === '1';

/** The patterns of one package, relative to its folder. */
function ensemblesOf(name: string): string[] {
  const folder = `packages/${name}/`;
  return ensembles
    .filter((pattern) => pattern.startsWith(folder))
    .map((pattern) => pattern.slice(folder.length));
}

export default defineConfig({
  test: {
    // Tests wait far more than they compute: for ttls to end, servers to come back.
    maxWorkers: 2,
    passWithNoTests: true,
    projects: packages.map((name) => ({
      test: {
        name,
        root: `packages/${name}`,
        include: wanted ? ensemblesOf(name) : ['src/**/*.test.ts'],
        exclude: wanted ? [] : ensemblesOf(name),
        environment: 'node',
        pool: 'forks',
        testTimeout: 30_000,
        hookTimeout: 60_000,
      },
    })),
  },
});
