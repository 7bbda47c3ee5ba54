import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { connect } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from './program.js';
import { MAIN, Scratch } from './testing/program.js';

let scratch: Scratch;

beforeEach(() => {
  scratch = new Scratch();
});

afterEach(() => scratch.dispose());

/** Runs the program in this process. */
async function holdfast(...args: string[]): Promise<{ code: number; out: string[]; err: string }> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await main(args, { out: (line) => out.push(line), err: (line) => err.push(line) });
  return { code, out, err: err.join('\n') };
}

/** As {@link holdfast}, on this test's locks. */
const here = (...args: string[]) => holdfast(...args, '--url', scratch.url);

describe('usage', () => {
  it.each([
    ['no command', ['run', 'job', '--'], 'missing required argument'],
    ['a command without --', ['run', 'job', 'sh', '-c', 'true'], 'stands after --'],
    ['words before --', ['run', 'job', 'echo', 'A', '--', 'B'], 'the command follows --'],
    ['words and options before --', ['run', 'job', '--try', 'A', '--ttl', '5s', '--', 'B'], 'follows --'],
    ['no name before --', ['run', '--try', '--', 'echo', 'A'], 'the name stands before --'],
    ['no name before the -- of the command', ['run', '--', 'grep', '--', '-x'], 'the name stands before --'],
    ['a name with a dash and no command', ['run', '--', '-x', '--'], 'the command is missing'],
    ['a duration without a unit', ['run', '--ttl', '30', 'job', '--', 'true'], '--ttl is "30"'],
    ['a negative wait', ['run', '--wait', '-1s', 'job', '--', 'true'], '--wait'],
    ['--wait beside --try', ['run', '--try', '--wait', '1s', 'job', '--', 'true'], 'cannot be used with'],
    ['an unknown option', ['run', '--tty', 'job', '--', 'true'], "unknown option '--tty'"],
    ['an unknown command', ['rnu', 'job'], "unknown command 'rnu'"],
    ['--url beside --config', ['list', '--url', 'memory:', '--config', 'x.json'], 'not both'],
    ['release without --force', ['release', 'job', '--url', 'memory:'], '--force'],
    ['a token that is none', ['release', '--force', '--token', 'x', 'job', '--url', 'memory:'], '--token'],
    ['a name that is too long', ['show', 'x'.repeat(513), '--url', 'memory:'], 'name is'],
  ])('%s is 64, and says so', async (_what, args, message) => {
    expect(await holdfast(...args)).toMatchObject({
      code: 64,
      out: [],
      err: expect.stringContaining(message),
    });
  });

  it.each([
    ['an unknown scheme', ['--url', 'foo://h'], 'no known scheme'],
    ['a config file that is not there', ['--config', '/nowhere.json'], '/nowhere.json'],
    ['an unknown parameter', ['--url', 'memory:?nope=1'], 'unknown parameter "nope"'],
  ])('%s is 78', async (_what, args, message) => {
    expect(await holdfast('list', ...args)).toMatchObject({
      code: 78,
      err: expect.stringContaining(message),
    });
  });

  it.each([
    ['an option', 64, ['list', '--Url=redis://:S3CRET@h']],
    ['a command', 64, ['redis://user:S3C/RET@h']],
    ['a config file', 78, ['list', '--config', 'redis://:S3CRET@h']],
  ])('a URL given as %s is a complaint without its password', async (_what, code, args) => {
    const ended = await holdfast(...args);
    expect(ended.code).toBe(code);
    expect(ended.err).not.toMatch(/S3C|RET/);
  });

  it('a backend that does not answer is 69', async () => {
    const end = await holdfast('list', '--url', 'sqlite:/dev/null/locks.db');
    expect(end).toMatchObject({ code: 69, err: expect.stringContaining('/dev/null/locks.db') });
  });

  it('shows what was typed without its escapes', async () => {
    const { err } = await holdfast('\u001b]0;owned\u0007');
    expect(err).toContain("holdfast: unknown command '\\e]0;owned\\u{7}'");
  });

  it('every command has a help page', async () => {
    const { out } = await holdfast('--help');
    const commands = [...out.join('\n').matchAll(/^ {2}([a-z]+) \[/gm)].map(([, name = '']) => name);
    const expected = ['run', 'list', 'show', 'watch', 'release', 'doctor', 'migrate', 'bench', 'demo'];
    expect(commands).toEqual([...expected, 'help']);
    for (const command of expected) {
      const { code, out: help } = await holdfast(command, '--help');
      expect({ code, help: help.join('\n') }).toEqual({
        code: 0,
        help: expect.stringContaining(`Usage: holdfast ${command}`),
      });
    }
  });
});

it('answers that cannot be written are 74', async () => {
  const shell = `"${process.execPath}" "${MAIN}" doctor --url "${scratch.url}" > /dev/full`;
  const failed: unknown = await promisify(execFile)('sh', ['-c', shell]).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: 74 });
});

describe('list, show and watch', () => {
  it('tell who holds what, who waits, and the token', async () => {
    await using locks = await connect(scratch.url);
    const hold = await locks.lock('order:42').acquire({ metadata: 'night run' });
    const waiting = new AbortController();
    const waiter = locks.lock('order:42').acquire({ signal: waiting.signal });
    const heard = new Promise((resolve) => locks.on('waiting', resolve));
    await heard;

    const { out } = await here('list', '--json');
    expect(out.map((line) => JSON.parse(line))).toMatchObject([
      { name: 'order:42', held: true, owner: hold.owner, fencingToken: String(hold.fencingToken) },
    ]);
    expect((await here('list')).out.join('\n')).toMatch(
      new RegExp(`order:42 +${hold.owner}.* ${hold.fencingToken}`),
    );
    expect((await here('list', '--prefix', 'x')).out).toEqual([]);

    const shown = (await here('show', 'order:42')).out.join('\n');
    for (const part of [hold.owner, String(hold.fencingToken), 'night run', 'waiting     1']) {
      expect(shown).toContain(part);
    }
    expect(JSON.parse((await here('show', 'order:42', '--json')).out.join(''))).toMatchObject({
      waiters: [{ position: 1 }],
    });
    const looks = (await here('watch', '--json', '--count', '2', '--interval', '10ms')).out;
    expect(looks.map((line) => JSON.parse(line).locks.length)).toEqual([1, 1]);

    waiting.abort();
    await expect(waiter).rejects.toThrow();
    await hold.release();
  });
});

it('watch ends when nobody reads any more', async () => {
  const shell = `"${process.execPath}" "${MAIN}" watch --interval 10ms --url "${scratch.url}" | head -1`;
  const { stdout } = await promisify(execFile)('sh', ['-c', shell], { timeout: 20_000 });
  expect(stdout).toContain('no locks are held or waited for');
});

describe('release', () => {
  it('with a token breaks that grant only', async () => {
    await using locks = await connect(scratch.url);
    const hold = await locks.lock('job').acquire();
    const other = String(hold.fencingToken + 1n);
    expect(await here('release', '--force', '--token', other, 'job')).toMatchObject({ code: 1 });
    expect((await locks.inspect('job')).held).toBe(true);
    const token = String(hold.fencingToken);
    expect(await here('release', '--force', '--token', token, 'job', '--json')).toMatchObject({
      code: 0,
      out: ['{"name":"job","released":true}'],
    });
    expect(await hold.verify()).toBe(false);
  });

  it('without a token wants the name typed again', async () => {
    await using locks = await connect(scratch.url);
    await locks.lock('job').acquire();
    const denied = await scratch.holdfast(['release', '--force', 'job']).input('jbo\n').exited;
    expect(denied).toMatchObject({ code: 64, stderr: expect.stringContaining('not confirmed') });
    expect((await locks.inspect('job')).held).toBe(true);
    expect(await scratch.holdfast(['release', '--force', 'job']).input('job\n').exited).toMatchObject({
      code: 0,
    });
    expect((await locks.inspect('job')).held).toBe(false);
  });

  it('breaks the grant that was shown, not one that came while the name was typed', async () => {
    await using locks = await connect(scratch.url);
    const shown = await locks.lock('job').acquire();
    const program = scratch.holdfast(['release', '--force', 'job']);
    await program.says('Type the name again');
    await shown.release();
    const next = await locks.lock('job').acquire();
    expect(await program.input('job\n').exited).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`not held with token ${shown.fencingToken}`),
    });
    expect(await next.verify()).toBe(true);
  });

  it('says when there was nothing to break', async () => {
    const end = await here('release', '--force', 'job');
    expect(end).toMatchObject({ code: 1, err: expect.stringContaining('not held') });
  });
});

describe('doctor', () => {
  it('measures, takes a lock and gives it back, and finds nothing wrong with a SQLite file', async () => {
    const { code, out } = await here('doctor', '--json');
    const told = JSON.parse(out.join(''));
    expect(code).toBe(0);
    expect(told).toMatchObject({ backend: 'sqlite', roundTrip: { median: expect.any(Number) } });
    expect(told.findings.map(({ level }: { level: string }) => level)).not.toContain('danger');
    expect((await here('list', '--json')).out).toEqual([]);
  });

  it('calls locks of one process dangerous, and its exit code says so', async () => {
    const end = await holdfast('doctor', '--url', 'memory:');
    expect(end).toMatchObject({ code: 1, out: expect.arrayContaining([expect.stringContaining('DANGER')]) });
  });
});

describe('migrate', () => {
  it('makes the tables that the application may not make', async () => {
    const url = `${scratch.url}?migrate=false`;
    await expect(holdfast('list', '--url', url)).resolves.toMatchObject({ code: 69 });
    expect(await holdfast('migrate', '--url', url)).toMatchObject({ code: 0 });
    expect(await holdfast('list', '--url', url)).toMatchObject({ code: 0 });
  });

  it('has nothing to do for a backend without tables', async () => {
    expect(await holdfast('migrate', '--url', 'memory:')).toMatchObject({
      code: 0,
      out: [expect.stringContaining('nothing to do')],
    });
  });
});

it('bench measures, and draws', async () => {
  const svg = scratch.path('bench.svg');
  const end = await holdfast(
    ...['bench', '--url', 'memory:', '--duration', '50ms', '--parallel', '5', '--svg', svg, '--json'],
  );
  expect(end.code).toBe(0);
  const { series } = JSON.parse(end.out.join(''));
  expect(series).toHaveLength(3);
  expect(series[0]).toMatchObject({ perSecond: expect.any(Number), p50: expect.any(Number) });
  expect(readFileSync(svg, 'utf8')).toMatch(/^<svg [\s\S]*<rect [\s\S]*<\/svg>\n$/);
});
