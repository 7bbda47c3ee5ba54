import { isHoldfastError } from '@holdfast/core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { CLOCK_RULE, RULES, SERVER_RULES, type Story } from './rules.js';
import type { LockStore } from './store.js';
import { DATABASES, type TestDatabase, tenant } from './test-kit.js';

/** A statement broken on purpose, and the rule that must notice. */
interface Mutant {
  readonly rule: string;
  readonly from: RegExp;
  readonly to: string;
}

const POSTGRES: Readonly<Record<string, Mutant>> = {
  'a re-ask mints a new token': {
    rule: 'mine comes first: asking again gives the same token, whoever waits',
    from: /fence = CASE WHEN l\.owner = :owner THEN l\.fence WHEN/,
    to: 'fence = CASE WHEN l.owner = :owner THEN l.fence + 1 WHEN',
  },
  'a re-ask overwrites the expiry': {
    rule: 'asking again never shortens',
    from: /THEN greatest\(l\.expires, excluded\.acquired \+ :ttl::bigint\)/,
    to: 'THEN excluded.acquired + :ttl::bigint',
  },
  'a renewal overwrites the expiry': {
    rule: 'a renewal never shortens',
    from: /SET expires = greatest\(l\.expires, now \+ g\.ttl\)/,
    to: 'SET expires = now + g.ttl',
  },
  'a renewal does not look at the owner': {
    rule: 'a renewal checks the owner and the token, and creates nothing',
    from: /AND l\.owner = g\.owner AND l\.fence = g\.fence RETURNING/,
    to: 'AND l.fence = g.fence RETURNING',
  },
  'a renewal does not look at the token': {
    rule: 'a renewal checks the owner and the token, and creates nothing',
    from: /AND l\.owner = g\.owner AND l\.fence = g\.fence RETURNING/,
    to: 'AND l.owner = g.owner RETURNING',
  },
  'the queue is not looked at': {
    rule: 'nobody overtakes a live waiter, not even without queueing',
    from: /(SELECT now, EXISTS \(SELECT 1 FROM \S+ WHERE id = :id\s+AND \()/,
    to: '$1 false AND ',
  },
  'the dead wait on': {
    rule: 'a dead waiter blocks nobody',
    from: /(EXISTS \(SELECT 1 FROM \S+ WHERE id = :id\s+AND \()alive_until > now/,
    to: '$1 true',
  },
  'a dead place is revived': {
    rule: 'a place that died is joined again at the end',
    from: /ticket = CASE WHEN .*? END,/s,
    to: 'ticket = w.ticket,',
  },
  'a release leaves the owner': {
    rule: 'a release clears the owner: a late renewal does not revive it',
    from: /SET owner = NULL, metadata = NULL, expires/,
    to: 'SET expires',
  },
  'a release frees whoever holds it': {
    rule: 'a release frees nobody else',
    from: /WHERE id = :id AND owner = :owner RETURNING queued/,
    to: 'WHERE id = :id RETURNING queued',
  },
  'a release of many frees whoever holds them': {
    rule: 'many releases at once free what is theirs, each knows whether it did, and heads are named',
    from: /AND l\.owner = g\.owner RETURNING n, queued/,
    to: 'RETURNING n, queued',
  },
  'a take leaves no mark': {
    rule: 'a release names the head of the queue',
    from: /queued = greatest\(l\.queued, excluded\.queued\)/,
    to: 'queued = l.queued',
  },
  'a grant leaves the place': {
    rule: 'a grant removes the place: the next release names the next',
    from: /DELETE FROM (\S+) AS w USING taken AS t\s+WHERE w\.id = :id/,
    to: 'DELETE FROM $1 AS w USING taken AS t WHERE false AND w.id = :id',
  },
  'a cancel leaves the place': {
    rule: 'who gives up a turn hands it on',
    from: /DELETE FROM (\S+) WHERE id = :id AND owner = :owner AND gone_until = 0/,
    to: 'DELETE FROM $1 WHERE false AND id = :id AND owner = :owner',
  },
  'a held lock wakes its head': {
    rule: 'who gives up while the lock is held wakes nobody',
    from: /AND l\.expires <= now\)\s+ORDER BY/,
    to: ') ORDER BY',
  },
  'tokens follow the clock alone': {
    rule: 'tokens rise even where the clock is behind them, all 64 bits of them',
    from: /greatest\(l\.fence \+ 1, excluded\.fence\)/,
    to: 'excluded.fence',
  },
  'tokens only count': {
    rule: 'a token is the time where the counter was lost',
    from: /ELSE :owner::text END, now, now,/,
    to: 'ELSE :owner::text END, 2, now,',
  },
  'force does not look at the token': {
    rule: 'force breaks the expected grant alone, and leaves word of it',
    from: /AND \(:expected::bigint IS NULL OR fence = :expected::bigint\)/,
    to: 'AND (:expected::bigint IS NULL OR true)',
  },
  'adoption does not look at the owner': {
    rule: 'of two who adopt, one does; who did may ask again',
    from: /owner IN \(:owner, :newOwner\)/,
    to: '(owner IN (:owner, :newOwner) OR true)',
  },
  'a sweep does not look at the waiters': {
    rule: 'a sweep spares what is held, kept, waited for or young, and no token falls by it',
    from: /AND NOT EXISTS \(SELECT 1 FROM \S+ AS w WHERE w\.id = l\.id\)\s+LIMIT :limit/,
    to: 'LIMIT :limit',
  },
  'the buried are served': {
    rule: 'an attempt that arrives after its release finds the claim gone',
    from: /AND gone_until > 0\)\) AS blocked/,
    to: 'AND gone_until > 0 AND false)) AS blocked',
  },
};

const MYSQL: Readonly<Record<string, Mutant>> = {
  'a re-ask mints a new token': {
    rule: 'mine comes first: asking again gives the same token, whoever waits',
    from: /<=> :owner, LAST_INSERT_ID\((\S+)\.fence\)/,
    to: '<=> :owner, LAST_INSERT_ID($1.fence + 1)',
  },
  'a re-ask overwrites the expiry': {
    rule: 'asking again never shortens',
    from: /expires = IF\((\S+)\.owner <=> :owner, GREATEST\(\S+, (t\.now \+ CAST\(:ttl AS SIGNED\))\)/,
    to: 'expires = IF($1.owner <=> :owner, $2',
  },
  'the expiry is assigned before the owner': {
    rule: 'nobody overtakes a live waiter, not even without queueing',
    from: /ON DUPLICATE KEY UPDATE\s+fence/,
    to: 'ON DUPLICATE KEY UPDATE expires = t.now - 1, fence',
  },
  'the queue is not looked at': {
    rule: 'nobody overtakes a live waiter, not even without queueing',
    from: /SELECT EXISTS \(SELECT 1 FROM (\S+) AS w WHERE/,
    to: 'SELECT EXISTS (SELECT 1 FROM $1 AS w WHERE 0 AND',
  },
  'the dead wait on': {
    rule: 'a dead waiter blocks nobody',
    from: /(SELECT EXISTS \(SELECT 1 FROM \S+ AS w WHERE w\.id = :id) AND w\.alive_until > TIMESTAMPDIFF\(.*?\(6\)\)/,
    to: '$1',
  },
  'a dead place is revived': {
    rule: 'a place that died is joined again at the end',
    from: /gone_until = 0 AND alive_until <= /,
    to: 'gone_until = 0 AND 0 > ',
  },
  'a release leaves the owner': {
    rule: 'a release clears the owner: a late renewal does not revive it',
    from: /LAST_INSERT_ID\(queued\), owner = NULL, metadata = NULL,/,
    to: 'LAST_INSERT_ID(queued),',
  },
  'a release frees whoever holds it': {
    rule: 'a release frees nobody else',
    from: /WHERE id = :id AND owner = :owner$/,
    to: 'WHERE id = :id OR owner = :owner',
  },
  'a take leaves no mark': {
    rule: 'a release names the head of the queue',
    from: /queued = GREATEST\(\S+, CAST\(:mark AS SIGNED\), t\.blocked\)/,
    to: 'queued = CAST(0 * :mark AS SIGNED)',
  },
  'a place is never left': {
    rule: 'a grant removes the place: the next release names the next',
    from: /WHERE id = :id AND owner = :owner AND gone_until = 0$/,
    to: 'WHERE id = :id AND owner = :owner AND 0',
  },
  'a held lock wakes its head': {
    rule: 'who gives up while the lock is held wakes nobody',
    from: /EXISTS \(SELECT 1 FROM \S+ AS l WHERE l\.id = :id AND .*?\) AS free/,
    to: '1 = 1 OR :id IS NULL AS free',
  },
  'tokens follow the clock alone': {
    rule: 'tokens rise even where the clock is behind them, all 64 bits of them',
    from: /GREATEST\(\S+\.fence \+ 1, t\.now\)/,
    to: 't.now',
  },
  'adoption does not look at the owner': {
    rule: 'of two who adopt, one does; who did may ask again',
    from: /owner IN \(:owner, :newOwner\)/,
    to: '(owner IN (:owner, :newOwner) OR 1)',
  },
  'the buried are served': {
    rule: 'an attempt that arrives after its release finds the claim gone',
    from: /g\.owner = :owner AND g\.gone_until > 0/,
    to: 'g.owner = :owner AND 0',
  },
  'a free row is taken whoever waits': {
    rule: 'nobody overtakes a live waiter whose mark is still under way',
    from: /\(w\.alive_until > .+? OR w\.owner = :owner\)/,
    to: 'w.owner = :owner',
  },
  'a row is taken as if it were free': {
    rule: 'who has had the lock before has no other rights for that',
    from: /AND expires <= \S+ \S+ \S+ \S+ AND queued = 0/,
    to: 'AND queued = 0',
  },
  'a free row is taken by the buried': {
    rule: 'so does one of who has had the lock before',
    from: /\(w\.alive_until > (.+?) OR w\.owner = :owner\)/,
    to: 'w.alive_until > $1',
  },
  'tokens of a free row follow the clock alone': {
    rule: 'tokens rise even where the clock is behind them, all 64 bits of them',
    from: /LAST_INSERT_ID\(GREATEST\(fence \+ 1, (.*?\(6\)\))\)\), acquired/,
    to: 'LAST_INSERT_ID($1), acquired',
  },
};

const MUTANTS = { postgres: POSTGRES, mariadb: MYSQL, mysql: MYSQL };

/** How each asks for its own time, and how a client would tell it instead. */
const CLOCKS = {
  numbered: ['(extract(epoch from clock_timestamp()) * 1000000)::bigint', ':told::bigint'],
  question: [
    "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))",
    'CAST(:told AS SIGNED)',
  ],
} as const;

/** Every statement goes by the clock of the client, which is that many ms ahead. */
function goByTheClient(ahead: number): void {
  vi.resetModules();
  vi.doMock('./statement.js', async (original) => {
    const { statement } = await original<typeof import('./statement.js')>();
    return {
      statement: (style: keyof typeof CLOCKS, source: string) => {
        const [sound, told] = CLOCKS[style];
        const compiled = statement<object>(style, source.replaceAll(sound, told));
        return {
          ...compiled,
          values: (parameters: object) =>
            compiled.values({ ...parameters, told: String((Date.now() + ahead) * 1000) }),
        };
      },
    };
  });
}

const servers = DATABASES.filter(({ name }) => name in MUTANTS);

describe.each(servers)('a broken statement is found out on $name', ({ name, start }) => {
  const mutants = MUTANTS[name as keyof typeof MUTANTS];
  let database: TestDatabase;

  beforeAll(async () => {
    database = await start();
  });
  afterAll(() => database.stop());
  afterEach(() => {
    vi.doUnmock('./statement.js');
    vi.resetModules();
  });

  it.each(Object.entries(mutants))('%s', async (_, { rule, from, to }) => {
    let struck = 0;
    vi.resetModules();
    vi.doMock('./statement.js', async (original) => {
      const { statement } = await original<typeof import('./statement.js')>();
      return {
        statement: (style: 'numbered' | 'question', source: string) => {
          if (from.test(source)) struck += 1;
          return statement(style, source.replace(from, to));
        },
      };
    });
    const { openStore } = await import('./test-kit.js');
    const prefix = tenant();
    const stores: LockStore[] = [];
    const open = async (): Promise<LockStore> => {
      const store = await openStore(database.url, prefix);
      stores.push(store);
      return store;
    };
    const story: Story | undefined = { ...RULES, ...SERVER_RULES }[rule];
    try {
      // Not by an error of the database: a mutant with broken syntax proves nothing.
      await expect(
        story?.({ url: database.url, prefix, a: await open(), b: await open() }),
      ).rejects.toSatisfy((error) => error instanceof Error && !isHoldfastError(error));
    } finally {
      for (const store of stores) await store.close();
    }
    expect(struck).toBeGreaterThan(0);
  });

  it('the time of the client', async () => {
    const HOUR = 3_600_000;
    const prefix = tenant();
    const stores: LockStore[] = [];
    for (const ahead of [0, HOUR]) {
      goByTheClient(ahead);
      const { openStore } = await import('./test-kit.js');
      stores.push(await openStore(database.url, prefix));
    }
    const [a, b] = stores as [LockStore, LockStore];
    try {
      await expect(CLOCK_RULE({ url: database.url, prefix, a, b })).rejects.toThrow('B was granted the lock');
    } finally {
      for (const store of stores) await store.close();
    }
  });
});
