import { defineConfig } from 'vitest/config';

/** The tests of `pnpm test:docker`: the same promises as everywhere, kept by containers, and some of their own. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['src/servers/lifecycle.test.ts', 'src/servers/docker.docker-test.ts'],
    environment: 'node',
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
