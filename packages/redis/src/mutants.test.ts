import { createHash } from 'node:crypto';
import { type RedisHandle, startRedis } from '@holdfast/testbed';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import * as scripts from './scripts.generated.js';
import { admin } from './test-kit.js';

// Each rule of the scripts is left out once. The story that it is there for must then end otherwise than it should: a rule
// that nothing would miss is no rule, and a story that cannot fail shows nothing.

let server: RedisHandle;
let client: Redis & Disposable;

beforeAll(async () => {
  server = await startRedis({ own: true });
  client = admin(server.url);
});

afterAll(async () => {
  client.disconnect();
  await server.stop();
});

beforeEach(async () => {
  await client.flushall();
});

type Scripts = Readonly<Record<keyof typeof scripts, string>>;

const SOUND = Object.fromEntries(
  Object.entries(scripts).map(([name, { source }]) => [name, source]),
) as Scripts;

/** The scripts with one of them changed in one place. */
function without(name: keyof typeof scripts, text: string, instead: string): Scripts {
  const source = SOUND[name];
  const parts = source.split(text);
  if (parts.length !== 2) throw new Error(`${name} has ${parts.length - 1} times ${text}`);
  return { ...SOUND, [name]: parts.join(instead) };
}

const KEYS = { lock: 'p:{k}', fence: 'p:{k}:fence', queue: 'p:{k}:queue', alive: 'p:{k}:alive' };
const ALL = Object.values(KEYS);
const GONE = 'p:{k}:gone:a';

/** Calls of one set of scripts. */
class Player {
  readonly #scripts: Scripts;

  constructor(set: Scripts) {
    this.#scripts = set;
  }

  run(name: keyof typeof scripts, keys: readonly string[], ...args: (string | number)[]): Promise<unknown> {
    return client.eval(this.#scripts[name], keys.length, ...keys, ...args);
  }

  acquire(owner: string, { ttl = 60_000, place = '' } = {}): Promise<unknown> {
    return this.run('acquire', ALL, owner, ttl, place);
  }

  release(owner: string, ...more: (string | number)[]): Promise<unknown> {
    return this.run('release', ALL, owner, ...(more.length === 0 ? [''] : more));
  }

  vote(owner: string, attempt = 1): Promise<unknown> {
    return this.run('quorumAcquire', [KEYS.lock, KEYS.fence, GONE], owner, attempt, 60_000, '');
  }
}

const holder = async (): Promise<string> => ((await client.get(KEYS.lock)) ?? '').split(/[\n#]/)[0] ?? '';
const left = () => client.pttl(KEYS.lock);
const granted = (answer: unknown) => typeof answer === 'string';

interface Rule {
  readonly rule: string;
  readonly leftOut: Scripts;
  /** True when it ended as it should. */
  story(play: Player): Promise<boolean>;
}

const RULES: readonly Rule[] = [
  {
    rule: 'release checks the owner',
    leftOut: without(
      'release',
      'local mine = lock and string.sub(lock, 1, #owner) == owner',
      'local mine = lock',
    ),
    async story(play) {
      await play.acquire('a');
      await play.release('b');
      return (await holder()) === 'a';
    },
  },
  {
    rule: 'release compares the whole owner',
    leftOut: without('release', "local owner = ARGV[1] .. '\\n'", 'local owner = ARGV[1]'),
    async story(play) {
      await play.acquire('ab');
      await play.release('a');
      return (await holder()) === 'ab';
    },
  },
  {
    rule: 'renewal checks the owner',
    leftOut: without(
      'renew',
      'if not lock or string.sub(lock, 1, #ARGV[1]) ~= ARGV[1] then',
      'if not lock then',
    ),
    async story(play) {
      await play.acquire('a', { ttl: 5000 });
      await play.run('renew', [KEYS.lock], 'b\n1\n', 60_000);
      return (await left()) <= 5000;
    },
  },
  {
    rule: 'renewal does not re-create',
    leftOut: without(
      'renew',
      'if not lock or',
      "if not lock then redis.call('SET', KEYS[1], ARGV[1] .. '0\\n', 'PX', ARGV[2]) return 1 end\nif",
    ),
    async story(play) {
      const token = await play.acquire('a');
      await client.del(KEYS.lock);
      return (await play.run('renew', [KEYS.lock], `a\n${token}\n`, 60_000)) === 0 && (await holder()) === '';
    },
  },
  {
    rule: 'renewal never shortens',
    leftOut: without('renew', "if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then", 'if true then'),
    async story(play) {
      const token = await play.acquire('a');
      await play.run('renew', [KEYS.lock], `a\n${token}\n`, 1000);
      return (await left()) > 30_000;
    },
  },
  {
    rule: 'who asks again has the grant that it has',
    leftOut: without('acquire', 'if lock and string.sub(lock, 1, #owner) == owner then', 'if false then'),
    async story(play) {
      const token = await play.acquire('a');
      return (await play.acquire('a')) === token;
    },
  },
  {
    rule: 'a newcomer does not overtake a live waiter',
    leftOut: without('acquire', 'if not lock and (not head or head == member) then', 'if not lock then'),
    async story(play) {
      await play.acquire('a');
      await play.acquire('b', { place: '-c' });
      await play.release('a');
      return !granted(await play.acquire('newcomer', { place: '-d' }));
    },
  },
  {
    rule: 'dead waiters are removed',
    leftOut: without('acquire', "redis.call('ZRANGEBYSCORE', alive, '-inf', millis)", '{}'),
    async story(play) {
      await play.acquire('a');
      await play.acquire('b', { place: '-c' });
      await play.release('a');
      await client.zadd(KEYS.alive, 'XX', 1, '-c b');
      return granted(await play.acquire('newcomer'));
    },
  },
  {
    rule: 'a token is above the last one, whatever the clock says',
    leftOut: without('acquire', 'last and last >= micros and last + 1 or micros', 'micros'),
    async story(play) {
      const ahead = (Date.now() + 3_600_000) * 1000;
      await client.set(KEYS.fence, String(ahead));
      return Number(await play.acquire('a')) > ahead;
    },
  },
  {
    rule: 'a tombstone refuses the late request of a claim that was given up',
    leftOut: without('acquire', "if redis.call('ZSCORE', KEYS[4], '! ' .. ARGV[1]) then", 'if false then'),
    async story(play) {
      await play.release('a', '', 0, 60_000);
      return !granted(await play.acquire('a').catch(() => 0));
    },
  },
  {
    rule: 'a claim that is given up takes its place along',
    leftOut: without('release', "redis.call('ZREM', KEYS[3], member)", ''),
    async story(play) {
      await play.acquire('a');
      await play.acquire('b', { place: '-c' });
      await play.release('b', '-c');
      await play.release('a');
      return granted(await play.acquire('newcomer'));
    },
  },
  {
    rule: 'a hand-over has a token of its own',
    leftOut: without(
      'release',
      'local token, life = mint(fence, micros)',
      "local token, life = string.match(lock, '\\n(%d+)\\n'), FENCE",
    ),
    async story(play) {
      const first = String(await play.acquire('a'));
      await play.acquire('b', { place: '+c' });
      await play.release('a');
      return String(await client.get(KEYS.lock)).split('\n')[1] !== first;
    },
  },
  {
    rule: 'a hand-over ends unless the heir renews it',
    leftOut: without(
      'release',
      "'PX', LIVENESS)\nredis.call('ZREM', KEYS[3], head)",
      "'PX', 60000)\nredis.call('ZREM', KEYS[3], head)",
    ),
    async story(play) {
      await play.acquire('a');
      await play.acquire('b', { place: '+c' });
      await play.release('a');
      return (await holder()) === 'b' && (await left()) <= 5000;
    },
  },
  {
    rule: 'a sign of life queues nobody again',
    leftOut: without('refresh', "if redis.call('ZSCORE', KEYS[4], member) then", 'if true then'),
    async story(play) {
      await play.acquire('a');
      await play.run('refresh', ALL, '-c b');
      return (await client.exists(KEYS.alive)) === 0;
    },
  },
  {
    rule: 'of two adopters one gets the hold',
    leftOut: without('adopt', 'elseif string.sub(lock, 1, #ARGV[2]) == ARGV[2] then', 'elseif true then'),
    async story(play) {
      const token = await play.acquire('a');
      const adopt = (by: string) =>
        play.run('adopt', [KEYS.lock], `a\n${token}\n`, `${by}\n${token}\n`, 60_000);
      return (await adopt('b')) === 1 && (await adopt('c')) === 0 && (await holder()) === 'b';
    },
  },
  {
    rule: 'of a quorum: a vote is for one attempt',
    leftOut: without(
      'quorumAcquire',
      'if owner == ARGV[1] and attempt == ARGV[2] then',
      'if owner == ARGV[1] then',
    ),
    async story(play) {
      await play.vote('a', 1);
      return !granted(await play.vote('a', 2));
    },
  },
  {
    rule: 'of a quorum: an attempt that is over gets no vote',
    leftOut: without(
      'quorumAcquire',
      'if gone and tonumber(gone) >= tonumber(ARGV[2]) then',
      'if false then',
    ),
    async story(play) {
      await play.run('quorumRelease', [KEYS.lock, GONE], 'a', 1, 0, '', 60_000);
      return !granted(await play.vote('a', 1).catch(() => 0));
    },
  },
  {
    rule: 'of a quorum: a server that was emptied keeps out',
    leftOut: without('quorumAcquire', 'if wait > 0 then', 'if false then'),
    async story(play) {
      const keys = [KEYS.lock, KEYS.fence, GONE, 'p:born'];
      const vote = () => play.run('quorumAcquire', keys, 'a', 1, 60_000, '', 60_000);
      const first = await vote();
      await client.set('p:born', '1');
      const later = await vote();
      return !granted(first) && granted(later);
    },
  },
  {
    rule: 'of a quorum: the counter never falls',
    leftOut: without('quorumConfirm', 'if not fence or tonumber(fence) < token then', 'if true then'),
    async story(play) {
      const token = String(await play.vote('a'));
      await play.run('quorumConfirm', [KEYS.lock, KEYS.fence], 'a', 1, '5');
      return (await client.get(KEYS.fence)) === token;
    },
  },
  {
    rule: 'of a quorum: only the attempt’s own servers confirm its token',
    leftOut: without('quorumConfirm', 'if owner ~= ARGV[1] or attempt ~= ARGV[2] then', 'if false then'),
    async story(play) {
      const token = String(await play.vote('a'));
      return (await play.run('quorumConfirm', [KEYS.lock, KEYS.fence], 'b', 1, token)) === null;
    },
  },
  {
    rule: 'of a quorum: release frees its own attempts alone',
    leftOut: without(
      'quorumRelease',
      'if owner ~= ARGV[1] or tonumber(attempt) > tonumber(ARGV[2]) then',
      'if false then',
    ),
    async story(play) {
      await play.vote('a', 2);
      await play.run('quorumRelease', [KEYS.lock], 'b', 9, 0, '', 60_000);
      await play.run('quorumRelease', [KEYS.lock], 'a', 1, 0, '', 60_000);
      return (await holder()) === 'a';
    },
  },
  {
    rule: 'of a quorum: renewal checks owner and attempt',
    leftOut: without('quorumRenew', 'if owner ~= ARGV[1] or attempt ~= ARGV[2] then', 'if false then'),
    async story(play) {
      const token = String(await play.vote('a'));
      return (await play.run('quorumRenew', [KEYS.lock, KEYS.fence], 'b', 1, token, 60_000)) === 'other';
    },
  },
  {
    rule: 'of a quorum: repair takes nothing from anybody',
    leftOut: without('quorumRepair', 'if found[1] or found[3] then', 'if false then'),
    async story(play) {
      await play.vote('a');
      await play.run('quorumRepair', [KEYS.lock, KEYS.fence, GONE], 'b', 1, '1', 60_000, '');
      return (await holder()) === 'a';
    },
  },
];

describe.each(RULES)('$rule:', ({ leftOut, story }) => {
  it('with it the story ends well, and without it not', async () => {
    expect(await story(new Player(SOUND))).toBe(true);
    await client.flushall();
    expect(await story(new Player(leftOut))).toBe(false);
  });
});

it('the scripts that ran are those that are shipped', () => {
  const shas = Object.values(scripts).map(({ source, sha }) => [
    sha,
    createHash('sha1').update(source).digest('hex'),
  ]);
  for (const [sha, computed] of shas) expect(sha).toBe(computed);
});
