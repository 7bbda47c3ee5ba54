import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { isAlive, Scratch, until } from '../testing/program.js';
import { CommandGroup, groupIsAlive } from './group.js';

const started: number[] = [];

afterEach(() => {
  for (const pid of started.splice(0)) {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  }
});

describe('groupIsAlive', () => {
  it('is false for a group of zombies that nobody collects, as in a container whose process 1 does not', async () => {
    // The background job gets a group of its own; its parent becomes a program that never waits for it.
    const parent = spawn('sh', ['-c', 'setsid sleep 1 & echo $!; exec sleep 600'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    started.push(parent.pid ?? 0);
    const [line] = await once(parent.stdout.setEncoding('utf8'), 'data');
    const zombie = Number(line);
    await until('it is a zombie', () => !isAlive(zombie));
    expect(process.kill(-zombie, 0)).toBe(true);
    expect(groupIsAlive(zombie)).toBe(false);
  });

  it('is true while anything of the group runs', async () => {
    const group = new CommandGroup('sh', ['-c', 'sleep 600 & exit 0'], process.env);
    await group.commandEnded;
    const id = group.id ?? 0;
    expect(groupIsAlive(id)).toBe(true);
    group.signal('SIGKILL');
    await group.ended;
    expect(groupIsAlive(id)).toBe(false);
  });
});

it('terminate sends TERM, also to what is stopped, and KILL to what stays', async () => {
  const scratch = new Scratch();
  const script =
    'trap "echo term >> $SCRATCH/log" TERM; echo ready >> "$SCRATCH/log"; while :; do sleep 0.1; done';
  const group = new CommandGroup('sh', ['-c', script], { ...process.env, SCRATCH: scratch.folder });
  await until('the trap is set', () => scratch.lines('log').length === 1);
  group.signal('SIGSTOP');
  group.terminate(500);
  expect(await group.ended).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
  expect(scratch.lines('log')).toEqual(['ready', 'term']);
  await scratch.dispose();
});

it('a command that cannot be started ends as such, and signals to it go nowhere', async () => {
  const group = new CommandGroup('/no/such/command', [], process.env);
  group.signal('SIGTERM');
  expect(await group.ended).toMatchObject({ kind: 'unstartable', error: { code: 'ENOENT' } });
});
