import { describeConformance } from '@holdfast/conformance';
import { type ServerHandle, startMariaDb } from '@holdfast/testbed';
import { afterAll, beforeAll } from 'vitest';
import { createBackend } from '../module.js';

let server: ServerHandle;

beforeAll(async () => {
  server = await startMariaDb({ own: true });
});

afterAll(() => server.stop());

describeConformance('mariadb', {
  create: ({ prefix }) => createBackend({ url: server.url, prefix }),
  child: () => ({ url: server.url }),
  faults: { stop: () => server.node.stop(), start: () => server.node.start() },
});
