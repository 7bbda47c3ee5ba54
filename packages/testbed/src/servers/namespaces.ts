import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { supervisor, withoutInjections } from '../supervisor/supervisor.js';
import { ownFolder, removeFolder } from './folder.js';
import { findProgram, hasProgram } from './install.js';

/**
 * Why this machine can make no network namespaces: for messages. Undefined where it can.
 *
 * It takes Linux and the right to change networks, which in most places is root's.
 */
export function noNamespaces(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are a thing of Linux';
  const absent = ['unshare', 'nsenter', 'ip'].filter((program) => !hasProgram(program));
  if (absent.length > 0) return `this machine has no ${absent.join(', ')}`;
  const trial = [
    '--net',
    'sh',
    '-ec',
    'ip link add name one type bridge; ip link add name two type veth peer name three',
  ];
  const { status, stderr } = spawnSync('unshare', trial, { encoding: 'utf8' });
  return status === 0
    ? undefined
    : `network namespaces need the right to change networks (root): ${stderr.trim()}`;
}

/**
 * Servers in network namespaces of their own, with two wires each: one to a switch, over which they reach one another,
 * and one to this machine, over which clients reach them. A server that is pulled out of the switch hears nothing of its
 * peers and they nothing of it, not so much as the end of a connection, and its clients notice nothing.
 *
 * Every namespace belongs to a process alone: it goes with the process, and every wire with it, however that ends; within
 * two minutes where connections were open.
 */
export interface Network {
  /** The server's address among its peers. */
  peerAddress(index: number): string;
  /** The server's address on this machine. */
  clientAddress(index: number): string;
  /** The command that runs `command` in the server's namespace. */
  inside(index: number, command: readonly string[]): readonly [program: string, ...args: string[]];
  /** Pulls the server out of the switch. */
  cut(index: number): void;
  /** Every server is in the switch again. */
  join(): void;
  stop(): Promise<void>;
}

const SWITCH = 'ip link add name switch type bridge; ip link set dev switch up; exec sleep infinity';

/** Wires the namespace that it runs in, and becomes the server. What is left of the last start's wires goes first. */
const SERVER = `
port=$1 switch=$2 peer=$3 wire=$4 machine=$5 ours=$6 theirs=$7
shift 7
nsenter --net=/proc/$switch/ns/net ip link del dev $port 2>/dev/null || true
nsenter --net=/proc/$machine/ns/net ip link del dev $wire 2>/dev/null || true
ip link set dev lo up
ip link add name peers type veth peer name $port netns $switch
ip addr add $peer/24 dev peers
ip link set dev peers up
nsenter --net=/proc/$switch/ns/net ip link set dev $port master switch up
ip link add name clients type veth peer name $wire netns $machine
ip addr add $theirs/30 dev clients
ip link set dev clients up
nsenter --net=/proc/$machine/ns/net ip addr add $ours/30 dev $wire
nsenter --net=/proc/$machine/ns/net ip link set dev $wire up
exec "$@"
`;

let networks = 0;

/** @throws Error where {@link noNamespaces} says why */
export async function startNetwork(size: number): Promise<Network> {
  const missing = noNamespaces();
  if (missing !== undefined) throw new Error(`Servers cannot be cut apart here: ${missing}.`);
  const number = networks++;
  const wires = await startSwitch();
  const wireOf = (index: number): string => `hf${process.pid}n${number}s${index}`;
  return {
    peerAddress,
    clientAddress: (index) => wireAddress(number, index, 'theirs'),
    inside: (index, command) => [
      'unshare',
      '--net',
      'sh',
      '-ec',
      SERVER,
      'sh',
      portOf(index),
      String(wires.pid),
      peerAddress(index),
      wireOf(index),
      String(process.pid),
      wireAddress(number, index, 'ours'),
      wireAddress(number, index, 'theirs'),
      ...command,
    ],
    cut: (index) => wires.run('link', 'set', 'dev', portOf(index), 'nomaster'),
    join() {
      for (let index = 0; index < size; index++)
        wires.run('link', 'set', 'dev', portOf(index), 'master', 'switch');
    },
    async stop() {
      // The kernel keeps a namespace for as long as connections in it wait for their last words to be answered.
      for (let index = 0; index < size; index++) spawnSync('ip', ['link', 'del', 'dev', wireOf(index)]);
      await wires.stop();
    },
  };
}

/** A switch in a namespace of its own: in this machine's, a firewall may have a say in what it passes on. */
async function startSwitch(): Promise<{
  readonly pid: number;
  run(...ip: string[]): void;
  stop(): Promise<void>;
}> {
  const folder = await ownFolder('switch');
  const { pid, signal, gone } = await supervisor().spawn({
    command: findProgram('unshare'),
    args: ['--net', 'sh', '-ec', SWITCH],
    cwd: folder,
    env: withoutInjections(process.env),
    logFile: join(folder, 'switch.log'),
  });
  const run = (...ip: string[]): void => {
    execFileSync('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', ...ip], { stdio: 'pipe' });
  };
  const stop = async (): Promise<void> => {
    await signal('SIGKILL');
    await gone();
    await removeFolder(folder);
  };
  for (let left = 200; ; left--) {
    try {
      run('link', 'show', 'dev', 'switch');
      return { pid, run, stop };
    } catch (error) {
      if (left > 0) await sleep(10);
      else throw await stop().then(() => error);
    }
  }
}

function portOf(index: number): string {
  return `server${index}`;
}

function peerAddress(index: number): string {
  return `192.0.2.${index + 1}`;
}

/** Of a block of 16 addresses in the network that is set apart for tests of network gear, 198.18.0.0/15. */
function wireAddress(network: number, index: number, end: 'ours' | 'theirs'): string {
  const block = ((process.pid * 4 + network) % 8192) * 16;
  const offset = block + index * 4 + (end === 'ours' ? 1 : 2);
  return `198.${18 + (offset >> 16)}.${(offset >> 8) & 255}.${offset & 255}`;
}
