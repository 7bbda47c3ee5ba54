import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from '@holdfast/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { childrenOf, isAlive, MAIN, Scratch, stateOf, until } from '../testing/program.js';

let scratch: Scratch;

beforeEach(() => {
  scratch = new Scratch();
});

afterEach(() => scratch.dispose());

/** A command that tells its process id in a file and then works for ever, a child beside it. */
const WORKER = ['--', 'sh', '-c', 'sleep 600 & echo $$ $! > "$SCRATCH/pids"; wait'] as const;

async function pids(): Promise<readonly number[]> {
  await until('the worker has told its processes', () => scratch.lines('pids').length === 1);
  return (scratch.lines('pids')[0] ?? '').split(' ').map(Number);
}

/** Node options by which the program runs this code of ours at a moment that nothing outside could hit so surely. */
function preloaded(code: string): NodeJS.ProcessEnv {
  const pause = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)';
  const script = code.replace('PAUSE', pause);
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(script)}` };
}

async function isFree(name: string): Promise<boolean> {
  await using locks = await connect(scratch.url);
  return !(await locks.inspect(name)).held;
}

describe('cli-exit-code', () => {
  it.each([
    ['the command’s own code', ['--', 'sh', '-c', 'exit 7'], 7],
    ['128 + n for a command ended by signal n', ['--', 'sh', '-c', 'kill -9 $$'], 137],
    ['127 for a command that is not there', ['--', 'no-such-command'], 127],
    ['126 for a command that cannot be started', ['--', '/'], 126],
  ])('%s', async (_what, args, code) => {
    const end = await scratch.holdfast(['run', 'job', ...args]).exited;
    expect(end).toMatchObject({ code, signal: null });
    expect(await isFree('job')).toBe(true);
  });

  it('75 for a busy lock, with --try at once and with --wait at its end', async () => {
    const holder = scratch.holdfast(['run', 'job', '-v', ...WORKER]);
    await pids();
    expect(await scratch.holdfast(['run', '--try', 'job', '--', 'true']).exited).toMatchObject({ code: 75 });
    const waited = await scratch.holdfast(['run', '--wait', '100ms', 'job', '--', 'true']).exited;
    expect(waited).toMatchObject({ code: 75, stderr: expect.stringContaining(`:${holder.pid}:`) });
    holder.kill('SIGTERM');
    await holder.exited;
  });
});

it.each([
  ['into a full device', '2> /dev/full'],
  ['into a pipe that nobody reads', '2> >(exec true)'],
  ['where it is closed', '2>&-'],
])('the command’s own code counts, whatever becomes of what is told: %s', async (_what, redirection) => {
  for (const code of [0, 7]) {
    const command = ['run', 'job', '-v', '--url', scratch.url, '--', 'sh', '-c', `sleep 0.2; exit ${code}`];
    const words = [process.execPath, MAIN, ...command].map((word) => `'${word}'`).join(' ');
    const shell = spawn('bash', ['-c', `${words} ${redirection}`], { stdio: 'ignore' });
    expect(await once(shell, 'exit')).toEqual([code, null]);
  }
});

it('everything after the first -- is the command, and a name may begin with a dash', async () => {
  const echo = ['sh', '-c', 'echo "$HOLDFAST_LOCK: $*"', 'sh'];
  const plain = await scratch.holdfast(['run', 'job', '--try', '--', ...echo, '--', '-x']).exited;
  expect(plain).toMatchObject({ code: 0, stdout: 'job: -- -x\n' });
  const dashed = await scratch.holdfast(['run', '--', '-x', '--', ...echo, '--', 'y']).exited;
  expect(dashed).toMatchObject({ code: 0, stdout: '-x: -- y\n' });
});

it('tells the command its lock, token and owner, and passes input and output through', async () => {
  const program = scratch.holdfast([
    'run',
    'job',
    '--',
    'sh',
    '-c',
    'cat; echo "$HOLDFAST_LOCK $HOLDFAST_FENCING_TOKEN $HOLDFAST_OWNER"; echo oops >&2',
  ]);
  const { code, stdout, stderr } = await program.input('from the pipe\n').exited;
  expect(stdout).toMatch(new RegExp(`^from the pipe\njob \\d+ [^ ]+:${program.pid}:[^ ]+\n$`));
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'oops\n' });
});

it('--json tells everything as JSON, a backend that cannot be had included', async () => {
  const events = (stderr: string) =>
    stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  const ran = await scratch.holdfast(['run', '--json', 'job', '--', 'sh', '-c', 'exit 7']).exited;
  expect(ran.code).toBe(7);
  expect(events(ran.stderr)).toMatchObject([
    { event: 'acquired', name: 'job', fencingToken: expect.stringMatching(/^\d+$/) },
    { event: 'started', pid: expect.any(Number) },
    { event: 'ended', code: 7 },
    { event: 'released', heldFor: expect.any(Number) },
  ]);
  const url = 'sqlite:/dev/null/locks.db';
  const failed = await scratch.holdfast(['run', '--json', '--url', url, 'job', '--', 'true']).exited;
  expect(failed.code).toBe(69);
  expect(events(failed.stderr)).toMatchObject([
    { event: 'failed', name: 'job', message: expect.any(String) },
  ]);
});

describe('cli-signals', () => {
  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGQUIT', 131],
  ] as const)('%s ends the whole group, then the lock is free; exit 128 + n', async (signal, code) => {
    const program = scratch.holdfast(['run', 'job', ...WORKER]);
    const processes = await pids();
    program.kill(signal);
    expect(await program.exited).toMatchObject({ code, signal: null });
    expect(processes.filter(isAlive)).toEqual([]);
    expect(await isFree('job')).toBe(true);
  });
});

describe('USR1 and USR2', () => {
  /** Tells both signals in a file; TERM ends it. */
  const LISTENER = [
    '--',
    'sh',
    '-c',
    'for s in USR1 USR2; do trap "echo $s >> \\"$SCRATCH/heard\\"" $s; done; trap "exit 3" TERM; ' +
      'echo $$ $$ > "$SCRATCH/pids"; while :; do sleep 0.05; done',
  ];

  it.each(['SIGUSR1', 'SIGUSR2'] as const)('%s goes to the command, which may go on', async (signal) => {
    const program = scratch.holdfast(['run', 'job', ...LISTENER]);
    await pids();
    program.kill(signal);
    await until('the command has heard it', () => scratch.lines('heard').length === 1);
    expect(scratch.lines('heard')).toEqual([signal.slice(3)]);
    program.kill('SIGTERM');
    const { code, stderr } = await program.exited;
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.not.stringContaining('Debugger') });
    expect(await isFree('job')).toBe(true);
  });

  it.each(['SIGUSR1', 'SIGUSR2'] as const)('%s means nothing to one who waits', async (signal) => {
    const holder = scratch.holdfast(['run', 'job', ...WORKER]);
    await pids();
    const waiter = scratch.holdfast(['run', 'job', '-v', '--', 'sh', '-c', 'exit 5']);
    await waiter.says('waiting');
    waiter.kill(signal);
    holder.kill('SIGTERM');
    await holder.exited;
    const { code, stderr } = await waiter.exited;
    expect({ code, stderr }).toEqual({ code: 5, stderr: expect.not.stringContaining('Debugger') });
  });
});

it('cli-grandchild: a lost lock ends the shell and what it started', async () => {
  const program = scratch.holdfast(['run', '--ttl', '1s', '--kill-after', '1s', 'job', ...WORKER]);
  const processes = await pids();
  await using locks = await connect(scratch.url);
  expect(await locks.forceRelease('job')).toBe(true);
  const end = await program.exited;
  expect(end).toMatchObject({ code: 76, stderr: expect.stringContaining('was lost') });
  expect(processes.filter(isAlive)).toEqual([]);
});

it('a command that ignores TERM is killed when its lock was lost', async () => {
  const stubborn = 'trap "" TERM; echo $$ > "$SCRATCH/pids"; while :; do sleep 1; done';
  const program = scratch.holdfast([
    ...['run', '--ttl', '1s', '--kill-after', '200ms', 'job'],
    ...['--', 'sh', '-c', stubborn],
  ]);
  const processes = await pids();
  await using locks = await connect(scratch.url);
  await locks.forceRelease('job');
  expect(await program.exited).toMatchObject({ code: 76 });
  expect(processes.filter(isAlive)).toEqual([]);
});

it('--max-hold ends the command', async () => {
  const end = await scratch.holdfast(['run', '--max-hold', '300ms', 'job', '--', 'sleep', '600']).exited;
  expect(end).toMatchObject({ code: 76, stderr: expect.stringContaining('maxHold') });
  expect(await isFree('job')).toBe(true);
});

it('--min-hold keeps the name taken after the command', async () => {
  expect(await scratch.holdfast(['run', '--min-hold', '1m', 'job', '--', 'true']).exited).toMatchObject({
    code: 0,
  });
  expect(await isFree('job')).toBe(false);
  expect(await scratch.holdfast(['run', '--try', 'job', '--', 'true']).exited).toMatchObject({ code: 75 });
});

it('the lock is free only after everything that the command started has gone', async () => {
  const leaver = 'sh -c "sleep 1; echo done >> "$SCRATCH/log"" & echo started >> "$SCRATCH/log"';
  const first = scratch.holdfast(['run', 'job', '--', 'sh', '-c', leaver]);
  await until('the command has ended', () => scratch.lines('log').length === 1);
  const second = scratch.holdfast(['run', 'job', '--', 'sh', '-c', 'echo next >> "$SCRATCH/log"']);
  expect(await second.exited).toMatchObject({ code: 0 });
  expect(await first.exited).toMatchObject({ code: 0 });
  expect(scratch.lines('log')).toEqual(['started', 'done', 'next']);
});

it('a signal while waiting ends the waiting and leaves no place in the queue', async () => {
  const holder = scratch.holdfast(['run', 'job', ...WORKER]);
  await pids();
  const waiter = scratch.holdfast(['run', '-v', 'job', '--', 'true']);
  await waiter.says('waiting');
  waiter.kill('SIGTERM');
  expect(await waiter.exited).toMatchObject({ code: 143 });
  await using locks = await connect(scratch.url);
  expect((await locks.inspect('job')).waiters).toEqual([]);
  holder.kill('SIGTERM');
  await holder.exited;
});

it('cli-child-at-shutdown: a signal around the grant starts no orphan and leaves the lock free', async () => {
  await using locks = await connect(scratch.url);
  const offsets = [-20, -5, 0, 1, 3, 8, 20];
  for (const offset of offsets) {
    const hold = await locks.lock('job').acquire();
    const waiter = scratch.holdfast([
      'run',
      '-v',
      'job',
      '--',
      'sh',
      '-c',
      'echo $$ >> "$SCRATCH/pids"; sleep 600',
    ]);
    await waiter.says('waiting');
    if (offset < 0) setTimeout(() => waiter.kill('SIGTERM'), 0);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, -offset)));
    const released = hold.release();
    if (offset >= 0) setTimeout(() => waiter.kill('SIGTERM'), offset);
    await released;
    expect(await waiter.exited).toMatchObject({ code: 143 });
    expect(scratch.lines('pids').map(Number).filter(isAlive)).toEqual([]);
    expect(await locks.inspect('job')).toMatchObject({ held: false, waiters: [] });
  }
}, 180_000);

it('cli-child-at-shutdown: a signal in the very moment of the grant ends what has just been started', async () => {
  const environment = preloaded(`
    import { subscribe } from 'node:diagnostics_channel';
    subscribe('holdfast:acquired', () => process.kill(process.pid, 'SIGTERM'));
  `);
  const program = scratch.holdfast(['run', 'job', ...WORKER], environment);
  expect(await program.exited).toMatchObject({ code: 143 });
  const started = scratch.lines('pids').flatMap((line) => line.split(' ').map(Number));
  expect(started.filter(isAlive)).toEqual([]);
  expect(await isFree('job')).toBe(true);
});

it('kill −9 of the program ends the command’s group before the name is free, which is within the ttl', async () => {
  const ttl = 4000;
  const program = scratch.holdfast(['run', '--ttl', `${ttl}ms`, 'job', ...WORKER]);
  const processes = await pids();
  await using locks = await connect(scratch.url);
  program.kill('SIGKILL');
  const killed = performance.now();
  const next = await locks.lock('job').acquire();
  expect(processes.filter(isAlive)).toEqual([]);
  expect(performance.now() - killed).toBeLessThan(ttl + 2000);
  await next.release();
});

it('twenty shells at once never overlap', async () => {
  const script = 'echo in >> "$SCRATCH/log"; sleep 0.05; echo out >> "$SCRATCH/log"';
  const programs = Array.from({ length: 20 }, () =>
    scratch.holdfast(['run', '--wait', '90s', 'job', '--', 'sh', '-c', script]),
  );
  const ends = await Promise.all(programs.map((program) => program.exited));
  expect(ends.map(({ code }) => code)).toEqual(Array(20).fill(0));
  expect(scratch.lines('log')).toEqual(Array(20).fill(['in', 'out']).flat());
}, 120_000);

it('hostile names and metadata are shown without their escapes, by every command that shows them', async () => {
  const hostile = '\u001b]0;owned\u0007\u009b2J\u202eevil\n';
  await using locks = await connect(scratch.url);
  const hold = await locks.lock(hostile).acquire({ metadata: hostile });
  const waiting = new AbortController();
  const queued = new Promise((resolve) => locks.on('waiting', resolve));
  const waiter = locks.lock(hostile).acquire({ signal: waiting.signal });
  await queued;
  const commands = [
    ['list'],
    ['list', '--json'],
    ['show', hostile],
    ['show', hostile, '--json'],
    ['watch', '--count', '1'],
    ['watch', '--count', '1', '--json'],
    ['release', '--force', '--token', '1', hostile],
    ['run', '--try', hostile, '--', 'true'],
    ['run', '--verbose', '--wait', '100ms', hostile, '--', 'true'],
    ['run', '--json', '--wait', '100ms', hostile, '--', 'true'],
    ['list', '--config', hostile],
    ['list', `--${hostile}`],
    [hostile],
  ];
  for (const command of commands) {
    const url = command.includes('--config') ? { HOLDFAST_URL: undefined } : {};
    const { stdout, stderr } = await scratch.holdfast(command, url).exited;
    const written = `${stdout}${stderr}`;
    expect({ command, written }).toEqual({ command, written: expect.stringContaining('evil') });
    expect([...written].filter((character) => '\u001b\u0007\u009b\u202e'.includes(character))).toEqual([]);
  }
  waiting.abort();
  await expect(waiter).rejects.toThrow();
  await hold.release();
}, 120_000);

it('handoff-delay-short-jobs: short jobs follow one another without a pause', async () => {
  const programs = Array.from({ length: 8 }, () => scratch.holdfast(['run', '--json', 'job', '--', 'true']));
  const ends = await Promise.all(programs.map((program) => program.exited));
  const holds = ends
    .map(({ stderr }) => {
      const events = stderr
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { event: string; at: string });
      const at = (event: string) => Date.parse(events.find((each) => each.event === event)?.at ?? '');
      return { waiting: at('waiting'), acquired: at('acquired'), released: at('released') };
    })
    .sort((a, b) => a.acquired - b.acquired);
  const gaps = holds.slice(1).flatMap(({ waiting, acquired }, index) => {
    const before = holds[index]?.released ?? 0;
    return waiting < before ? [acquired - before] : [];
  });
  expect(holds.every(({ released }) => Number.isFinite(released))).toBe(true);
  expect(Math.max(0, ...gaps)).toBeLessThan(2000 * Number(process.env.HOLDFAST_TIME_FACTOR ?? 1));
}, 60_000);

it('nothing stays behind after a run: no process, no entry', async () => {
  const program = scratch.holdfast(['run', '-v', 'job', ...WORKER]);
  const [shell = 0] = await pids();
  const guards = childrenOf(program.pid).filter((pid) => pid !== shell);
  expect(guards).toHaveLength(1);
  program.kill('SIGTERM');
  await program.exited;
  await until('the guard has gone', () => !guards.some(isAlive));
  await using locks = await connect(scratch.url);
  expect(await locks.inspect('job')).toMatchObject({ held: false, waiters: [] });
});

it('Ctrl-Z stops the command too; when the lock was lost meanwhile, it ends instead of going on', async () => {
  const program = scratch.holdfast(['run', '--ttl', '2s', 'job', ...WORKER]);
  const processes = await pids();
  await using locks = await connect(scratch.url);
  process.kill(program.pid, 'SIGTSTP');
  // Granted once the ttl of the stopped holder has run out.
  const next = await locks.lock('job').acquire();
  expect([program.pid, ...processes].map(stateOf)).toEqual(['T', 'T', 'T']);
  process.kill(program.pid, 'SIGCONT');
  expect(await program.exited).toMatchObject({ code: 76, stderr: expect.stringContaining('was lost') });
  expect(processes.filter(isAlive)).toEqual([]);
  expect(await next.verify()).toBe(true);
  await next.release();
});

it('Ctrl-Z at the very start of the command stops both', async () => {
  // The command sends it as its first act, while the program has not got further than starting it.
  const environment = preloaded(`
    import child from 'node:child_process';
    import { syncBuiltinESMExports } from 'node:module';
    const { spawn } = child;
    child.spawn = (...args) => {
      const started = spawn(...args);
      PAUSE;
      return started;
    };
    syncBuiltinESMExports();
  `);
  const script = 'kill -TSTP $PPID; echo $$ > "$SCRATCH/pids"; exec sleep 600';
  const program = scratch.holdfast(['run', 'job', '--', 'sh', '-c', script], environment);
  const processes = await pids();
  await until('both are stopped', () => [program.pid, ...processes].every((pid) => stateOf(pid) === 'T'));
  process.kill(program.pid, 'SIGCONT');
  await until('both go on', () => [program.pid, ...processes].every((pid) => stateOf(pid) === 'S'));
  program.kill('SIGTERM');
  expect(await program.exited).toMatchObject({ code: 143 });
});

it('a command is not started any more when the lock ran out right after the grant', async () => {
  const environment = preloaded(`
    import { subscribe } from 'node:diagnostics_channel';
    subscribe('holdfast:acquired', () => PAUSE);
  `);
  const program = scratch.holdfast(
    ['run', '--ttl', '200ms', 'job', '--', 'touch', scratch.path('ran')],
    environment,
  );
  expect(await program.exited).toMatchObject({
    code: 76,
    stderr: expect.stringContaining('was lost before'),
  });
  expect(existsSync(scratch.path('ran'))).toBe(false);
});

it('Ctrl-Z and back within the ttl changes nothing', async () => {
  const program = scratch.holdfast([
    'run',
    'job',
    '--',
    'sh',
    '-c',
    // Nothing is started: a shell whose child is stopped before it runs its program waits for it, and is not stopped itself.
    'echo $$ > "$SCRATCH/pids"; read -r line; printf %s "$line"; exit 7',
  ]);
  const processes = await pids();
  process.kill(program.pid, 'SIGTSTP');
  await until('both are stopped', () => [program.pid, ...processes].every((pid) => stateOf(pid) === 'T'));
  process.kill(program.pid, 'SIGCONT');
  expect(await program.input('go on').exited).toMatchObject({ code: 7, stdout: 'go on' });
});
