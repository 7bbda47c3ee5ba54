import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/**
 * A process and all its descendants, parents first. Process groups would not do: each PostgreSQL backend makes a
 * session of its own.
 */
export function processTree(root: number): number[] {
  const children = childrenByParent();
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** Signals every process of the tree; those that have gone meanwhile do not matter. */
export function signalTree(root: number, signal: NodeJS.Signals): void {
  // A stopped parent cannot fork while we look for its children.
  if (signal === 'SIGKILL') send(root, 'SIGSTOP');
  const tree = processTree(root);
  for (const pid of signal === 'SIGCONT' ? tree.reverse() : tree) send(pid, signal);
}

/** Whether every process of the tree stands still. */
export function isStopped(root: number): boolean {
  return processTree(root).every((pid) => /^[TtZX]/.test(stat(pid)?.state ?? 'X'));
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function childrenByParent(): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (const [pid, parent] of processes()) children.set(parent, [...(children.get(parent) ?? []), pid]);
  return children;
}

function processes(): [pid: number, parent: number][] {
  if (process.platform !== 'linux') return processesFromPs();
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name): [number, number][] => {
      const found = stat(Number(name));
      return found === undefined ? [] : [[Number(name), found.parent]];
    });
}

function stat(pid: number): { state: string; parent: number } | undefined {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-o', 'state=,ppid=', '-p', String(pid)], { encoding: 'utf8' });
    const [state, parent] = stdout.trim().split(/\s+/);
    return state === undefined || parent === undefined ? undefined : { state, parent: Number(parent) };
  }
  try {
    // The command's name may hold spaces and brackets: what counts comes after the last bracket.
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state = 'X', parent = '0'] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

function processesFromPs(): [pid: number, parent: number][] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
}
