import type { Clock, Diagnosis } from '@holdfast/core';
import type { Link } from './link.js';

export interface DiagnoseOptions {
  readonly clock: Clock;
  readonly minReplicas: number;
}

/** A server's clock that is this far from ours, ms, is worth a word: tokens and `since` come from it. */
const FAR_OFF = 1000;

type Info = ReadonlyMap<string, string>;

/** What each server's settings mean for locks. */
export async function diagnose(
  masters: readonly Link[],
  options: DiagnoseOptions,
): Promise<readonly Diagnosis[]> {
  const facts = await Promise.all(masters.map((master) => factsOf(master, options)));
  return facts.flat();
}

async function factsOf(link: Link, options: DiagnoseOptions): Promise<Diagnosis[]> {
  const info = parseInfo(String(await link.call('info', [])));
  const at = link.target;
  return [
    version(info, at),
    eviction(info, at),
    persistence(info, at),
    ...replication(info, at, options.minReplicas),
    await clock(link, options.clock),
  ];
}

function version(info: Info, at: string): Diagnosis {
  return { level: 'ok', id: 'redis-version', finding: `${at} is Redis ${info.get('redis_version') ?? '?'}` };
}

function eviction(info: Info, at: string): Diagnosis {
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  const limit = Number(info.get('maxmemory') ?? 0);
  if (policy === 'noeviction') {
    return {
      level: 'ok',
      id: 'redis-eviction',
      finding: `${at} evicts nothing (maxmemory-policy noeviction)`,
    };
  }
  return {
    level: limit > 0 ? 'danger' : 'warning',
    id: 'redis-eviction',
    finding:
      limit > 0
        ? `${at} may drop a held lock when memory is short (maxmemory-policy ${policy})`
        : `${at} would drop locks once maxmemory is set (maxmemory-policy ${policy})`,
    advice: 'set maxmemory-policy to noeviction, or give locks a Redis of their own',
  };
}

function persistence(info: Info, at: string): Diagnosis {
  if (info.get('aof_enabled') === '1') {
    return {
      level: 'ok',
      id: 'redis-persistence',
      finding: `${at} keeps an append-only file; with appendfsync everysec a crash may lose the last second's grants`,
    };
  }
  return {
    level: 'warning',
    id: 'redis-persistence',
    finding: `${at} keeps no append-only file: after a crash it comes back without the last grants, and others may be granted while a holder still believes in its own`,
    advice: 'set appendonly yes and appendfsync always, or check fencing tokens at the resource',
  };
}

function replication(info: Info, at: string, minReplicas: number): Diagnosis[] {
  const replicas = Number(info.get('connected_slaves') ?? 0);
  if (replicas === 0 && minReplicas === 0) return [];
  if (minReplicas === 0) {
    return [
      {
        level: 'warning',
        id: 'redis-replicas',
        finding: `${at} has ${replicas} replica(s) that follow asynchronously: a failover may lose the last grants`,
        advice: 'set minReplicas, and check fencing tokens at the resource',
      },
    ];
  }
  if (replicas >= minReplicas) {
    return [
      {
        level: 'ok',
        id: 'redis-replicas',
        finding: `${at} has ${replicas} replica(s), and a grant waits for ${minReplicas}`,
      },
    ];
  }
  return [
    {
      level: 'danger',
      id: 'redis-replicas',
      finding: `${at} has ${replicas} replica(s), and no grant is possible with minReplicas ${minReplicas}`,
      advice: 'attach replicas, or lower minReplicas',
    },
  ];
}

async function clock(link: Link, ours: Clock): Promise<Diagnosis> {
  const before = ours.wall();
  const [seconds, micros] = (await link.call('time', [])) as [string, string];
  const middle = (before + ours.wall()) / 2;
  const ahead = Math.round(Number(seconds) * 1000 + Number(micros) / 1000 - middle);
  const off = `${Math.abs(ahead)} ms ${ahead < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (Math.abs(ahead) < FAR_OFF) {
    return { level: 'ok', id: 'redis-clock', finding: `the clock of ${link.target} is ${off}` };
  }
  return {
    level: 'warning',
    id: 'redis-clock',
    finding: `the clock of ${link.target} is ${off}`,
    advice: 'run NTP on both: a step of the server clock lengthens or cuts every ttl, and tokens follow it',
  };
}

function parseInfo(text: string): Info {
  return new Map(
    text
      .split('\r\n')
      .filter((line) => line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}
