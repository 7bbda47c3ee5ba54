import { expect } from 'vitest';
import type { Guarantee } from '../guarantee.js';

const LONG = 'x'.repeat(511);

/** Names that are easily confused, cut, folded or misread, and have been. */
const NAMES: readonly string[] = [
  // Case, accents (composed and not), spaces at the ends.
  ...['Job', 'job', 'JOB', 'jöb', 'jo\u0308b', 'job ', ' job', 'job\t', 'job\n'],
  // zk-bad-names
  ...[
    'file:///v',
    '.',
    '..',
    'a/./b',
    'a',
    'a/b',
    'a//b',
    '/a',
    '\u0001',
    'zookeeper',
    'x/',
    'x',
    ' ',
    '  ',
    '/',
  ],
  // brace-unclosed, derived-key-crossslot
  ...[
    '{test',
    'abc{}xyz',
    '}{',
    '{',
    '}',
    '{}',
    '{a}',
    'a{b}c',
    'a}b{c',
    '{a}:queue',
    'a:queue',
    'a:fence',
    ':',
    '::',
  ],
  // sql-crc32-collision
  ...['plumless', 'buckeroo'],
  // sql-truncate-collision
  ...[`${LONG}a`, `${LONG}b`, LONG, `${'é'.repeat(255)}ab`, `${'é'.repeat(255)}ac`],
  // What means something elsewhere: patterns, escapes, quotes, numbers.
  ...[
    '*',
    '%',
    '_',
    '?',
    '[a]',
    '\\',
    'a\\b',
    "'",
    '"',
    '`',
    ';',
    '--',
    '%00',
    '%2F',
    'a%2Fb',
    '$1',
    ':name',
    '?x=1',
  ],
  ...[
    '0',
    '00',
    '-1',
    '1e3',
    'null',
    'undefined',
    'true',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
  ],
  // Emoji, scripts, direction, invisible characters.
  ...[
    '🔒',
    '🔒🔒',
    '👩‍👩‍👧',
    '锁',
    'قفل',
    'ß',
    'ss',
    'ẞ',
    'İ',
    'i',
    'ı',
    'a\u200b',
    '\u202ea',
    '\ufeffa',
    '\u007f',
    '\u0085',
  ],
  ...['a\u0001', 'a\u001f', '\uffff', 'ﬁ', 'fi', 'Å', '\u212b', 'A\u030a'],
];

const INVALID: readonly (readonly [string, unknown])[] = [
  ['the empty name', ''],
  ['U+0000', '\u0000'],
  ['U+0000 at the end', 'a\u0000'],
  ['U+0000 inside', 'a\u0000b'],
  ['a lone surrogate', '\ud800'],
  ['a lone surrogate inside', 'a\udc00b'],
  ['513 bytes', 'x'.repeat(513)],
  ['513 bytes in fewer characters', `${'é'.repeat(256)}x`],
  ['5000 characters', 'x'.repeat(5000)],
  ['undefined', undefined],
  ['null', null],
  ['a number', 42],
  ['an object', {}],
  ['an array', ['a']],
];

/** Names are bytes: every valid one works, no two are one. */
export const names: Guarantee = {
  name: 'names',
  cases: {
    async 'sql-truncate-collision, sql-crc32-collision, brace-unclosed, zk-bad-names: every name works, and no two are one'(
      t,
    ) {
      const [a, b] = await t.pair();
      const holds = await Promise.all(NAMES.map((name) => a.tryAcquire(name, { ttl: t.physics.longTtl() })));
      const refused = NAMES.filter((_, index) => holds[index] === null);
      expect(refused).toEqual([]);
      const overtaken = await Promise.all(NAMES.map((name) => b.tryAcquire(name)));
      expect(NAMES.filter((_, index) => overtaken[index] !== null)).toEqual([]);
      expect((await t.list()).map(({ name }) => name).sort()).toEqual([...NAMES].sort());
      const states = await Promise.all(NAMES.map((name) => t.inspect(name)));
      expect(states.map(({ owner }) => owner)).toEqual(holds.map((hold) => hold?.owner));
      expect(states.map(({ name }) => name)).toEqual([...NAMES]);
      const released = await Promise.all(holds.map((hold) => hold?.release()));
      expect(released).toEqual(NAMES.map(() => true));
      expect(await t.list()).toEqual([]);
    },

    async 'every name can be waited for'(t) {
      const [a, b] = await t.pair();
      const some = NAMES.filter((_, index) => index % 4 === 0);
      const holds = await Promise.all(some.map((name) => a.acquire(name, { ttl: t.physics.longTtl() })));
      const waits = some.map((name) => b.lock(name).run(({ owner }) => owner));
      await Promise.all(some.map((name) => b.event('waiting', name)));
      await Promise.all(holds.map((hold) => hold.release()));
      expect((await Promise.all(waits)).length).toBe(some.length);
    },

    async 'sql-null-byte: what is no name is InvalidArgumentError, and nothing is sent'(t) {
      const a = await t.open();
      for (const [what, name] of INVALID) {
        const invalid = expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'name' });
        expect(() => a.locks.lock(name as string), what).toThrow(invalid);
        await expect(a.locks.inspect(name as string), what).rejects.toEqual(invalid);
        await expect(a.locks.forceRelease(name as string), what).rejects.toEqual(invalid);
      }
      expect(a.seam.calls).toEqual([]);
    },

    async 'a name of exactly 512 bytes works'(t) {
      const a = await t.open();
      for (const name of ['x'.repeat(512), 'é'.repeat(256), '🔒'.repeat(128)]) {
        const hold = await a.acquire(name);
        expect([hold.name, (await t.inspect(name)).owner]).toEqual([name, hold.owner]);
        expect(await hold.release()).toBe(true);
      }
    },

    async 'the error of a bad name shows the value, shortened'(t) {
      const a = await t.open();
      expect(() => a.locks.lock('x'.repeat(5000))).toThrow(/name.*5000 characters.*1 to 512 bytes/);
    },
  },
};
