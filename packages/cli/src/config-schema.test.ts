import { readFileSync } from 'node:fs';
import { type BackendModule, connect } from '@holdfast/core';
import { etcd } from '@holdfast/etcd';
import { redis } from '@holdfast/redis';
import { sql } from '@holdfast/sql';
import { zookeeper } from '@holdfast/zookeeper';
import { describe, expect, it } from 'vitest';

// Here, since only the program's package sees core and every backend.
const schema = JSON.parse(readFileSync(new URL('../../core/schema.json', import.meta.url), 'utf8')) as {
  properties: Record<string, Section>;
};

interface Section {
  readonly properties?: Record<string, unknown>;
}

describe.each<[string, BackendModule]>([
  ['sqlite', sql],
  ['postgres', sql],
  ['mysql', sql],
  ['mariadb', sql],
  ['redis', redis],
  ['etcd', etcd],
  ['zookeeper', zookeeper],
])('the published schema of %s', (name, module) => {
  it('offers url, prefix and every option of its package', () => {
    const offered = Object.keys(schema.properties[name]?.properties ?? {});
    expect(offered.sort()).toEqual(['prefix', 'url', ...Object.keys(module.options ?? {})].sort());
  });
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
