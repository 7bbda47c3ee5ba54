import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type BackendModule, connect } from '@holdfast/core';
import { etcd } from '@holdfast/etcd';
import { redis } from '@holdfast/redis';
import { sql } from '@holdfast/sql';
import { zookeeper } from '@holdfast/zookeeper';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

// Here, since only the program's package sees core and every backend.
const file = fileURLToPath(import.meta.resolve('@holdfast/core/schema.json'));
const schema = JSON.parse(readFileSync(file, 'utf8')) as Section;

interface Section {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Section>>;
}

// Descriptions may stand beside a $ref, and one value may have several types.
const validate = new Ajv({ strict: true, strictTypes: false, allErrors: true }).compile(schema);

describe.each<[string, BackendModule]>([
  ['sqlite', sql],
  ['postgres', sql],
  ['mysql', sql],
  ['mariadb', sql],
  ['redis', redis],
  ['etcd', etcd],
  ['zookeeper', zookeeper],
])('the published schema of %s', (name, module) => {
  const section = schema.properties?.[name];

  it('offers url, prefix and every option of its package', () => {
    const offered = Object.keys(section?.properties ?? {});
    expect(offered.sort()).toEqual(['prefix', 'url', ...Object.keys(module.options ?? {})].sort());
  });

  it('describes each of them', () => {
    const undescribed = Object.entries(section?.properties ?? {})
      .filter(([key, { description }]) => key !== 'prefix' && description === undefined)
      .map(([key]) => key);
    expect({ undescribed, section: section?.description }).toEqual({
      undescribed: [],
      section: expect.any(String),
    });
  });
});

/** Every way to write things that a config may use, in YAML for short. */
const GOOD: readonly (readonly [string, string])[] = [
  ['memory alone', 'backend: memory'],
  ['a $schema line', '{ "$schema": "./node_modules/@holdfast/core/schema.json", "backend": "memory" }'],
  [
    'defaults',
    'backend: memory\ndefaults: { ttl: 20s, wait: 0, renew: true, maxHold: Infinity, minHold: 1.5s, reentrant: "1", metadata: x }',
  ],
  [
    'timeouts and an offset beyond numbers',
    'backend: memory\nfenceOffset: "9007199254740993"\ncommandTimeout: 2000\nunavailableAfter: 90s',
  ],
  ['sqlite', 'backend: sqlite\nsqlite: { url: "sqlite:./locks.db", journal: delete }'],
  [
    'variables',
    `backend: postgres\npostgres: { url: "\${DATABASE_URL}", migrate: "\${MIGRATE:-false}", pool: "\${POOL:-5}" }`,
  ],
  ['mysql and mariadb', 'backend: mysql\nmysql: { url: "mysql://h/d" }\nmariadb: { url: "mariadb://h/d" }'],
  [
    'redis with all that a file can say',
    'backend: redis\nredis: { url: "redis+sentinel://h1,h2/m", prefix: a.b, minReplicas: 1, minReplicasTimeout: 1s, db: 2, username: u, password: p, sentinelPassword: s, tls: { servername: h }, natMap: { "10.0.0.1:6379": { host: h, port: 1 } } }',
  ],
  [
    'a quorum',
    'backend: redis\nredis: { url: "redis+quorum://h1,h2,h3", maxTtl: 30s, restartGrace: 0, serverTimeout: 100ms }',
  ],
  [
    'etcd',
    'backend: etcd\netcd: { url: "etcds://h1,h2", username: u, password: p, ca: ./ca.pem, serverName: etcd }',
  ],
  [
    'zookeeper',
    'backend: zookeeper\nzookeeper: { url: "zookeeper://h1:2181,h2/x", sessionTimeout: 8s, chroot: /y, auth: "u:p", acl: creator }',
  ],
  [
    'somebody else’s backend beside ours',
    'backend: memory\n"@acme/holdfast-consul": { url: "consul://h", any: thing }\nredis: { url: "redis://h" }',
  ],
];

it.each(GOOD)('the schema takes %s', (_what, text) => {
  validate(parse(text));
  expect(validate.errors ?? []).toEqual([]);
});

it.each(GOOD)('and so does connect(): %s', async (_what, text) => {
  // A section that is not chosen is not read; the chosen one is, by its package, which then makes no connection.
  const config = JSON.parse(JSON.stringify(parse(text)).replaceAll(/"\$\{.*?\}"/g, '"1"')) as {
    backend: string;
  };
  const stopped = {
    ...config,
    [config.backend]: { ...Object(Reflect.get(config, config.backend)), nope: 1 },
  };
  await expect(connect(stopped as never)).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringMatching(/\.nope is not known|is not for the backend/),
  });
});

it.each([
  ['no backend', '{}', ''],
  ['a backend that is a path', 'backend: ./mine.js', '/backend'],
  ['an unknown key', 'backend: memory\nredys: {}', ''],
  ['an unknown default', 'backend: memory\ndefaults: { tll: 5s }', '/defaults'],
  ['a duration without a known unit', 'backend: memory\ndefaults: { ttl: 5 seconds }', '/defaults/ttl'],
  ['a negative duration', 'backend: memory\ncommandTimeout: -1', '/commandTimeout'],
  ['an unknown option', 'backend: redis\nredis: { minReplica: 1 }', '/redis'],
  ['the URL of another backend', 'backend: redis\nredis: { url: "etcd://h" }', '/redis/url'],
  ['a section that is a URL', 'backend: redis\nredis: redis://h', '/redis'],
  ['a prefix with a slash', 'backend: memory\nmemory: { prefix: a/b }', '/memory/prefix'],
  ['a flag that is none', 'backend: sqlite\nsqlite: { migrate: maybe }', '/sqlite/migrate'],
  ['a number that is none', 'backend: sqlite\nsqlite: { pool: 1.5 }', '/sqlite/pool'],
  ['an acl that nobody knows', 'backend: zookeeper\nzookeeper: { acl: world }', '/zookeeper/acl'],
])('the schema refuses %s, and so does connect()', async (_what, text, path) => {
  const config = parse(text);
  validate(config);
  expect(validate.errors?.map(({ instancePath }) => instancePath)).toContain(path);
  await expect(connect(config)).rejects.toMatchObject({ code: expect.stringMatching(/CONFIG|INVALID/) });
});

it.each([sql, redis, etcd, zookeeper].flatMap(({ schemes }) => schemes))(
  'connect() knows %s:',
  async (scheme) => {
    await expect(connect(`${scheme}://127.0.0.1:1/x?nope=1`)).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('unknown parameter "nope"'),
    });
  },
);
