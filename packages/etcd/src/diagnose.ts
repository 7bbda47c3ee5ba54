import { type Diagnosis, isHoldfastError } from '@holdfast/core';
import type { IMember, IStatusResponse } from 'etcd3';
import type { Endpoint } from './endpoint.js';
import type { Send, Transport } from './transport.js';

/**
 * From these on, per minor version, a leader that stood still for long does not revoke leases as it wakes up which the
 * members have renewed meanwhile with its successor (etcd-io/etcd#15247).
 */
const SAFE_PATCH: ReadonlyMap<string, number> = new Map([
  ['3.4', 31],
  ['3.5', 13],
]);

/** The version that brought all that this package needs: nested transactions and watches with ids. */
const OLDEST: readonly [major: number, minor: number] = [3, 4];

/** What these servers' state means for locks. */
export async function diagnose(transport: Transport): Promise<readonly Diagnosis[]> {
  const facts = await Promise.all([
    alarms(transport),
    membership(transport),
    ...transport.endpoints.map((endpoint) => member(transport, endpoint)),
  ]);
  return facts.flat();
}

async function alarms(transport: Transport): Promise<readonly Diagnosis[]> {
  const found = await ask(transport, 'read the alarms', (rpc, call) => rpc.alarms(call));
  if (found instanceof Error) return [unknown('etcd-alarm', 'the alarms', found)];
  const raised = found.alarms.map(({ alarm }) => alarm);
  if (raised.length === 0) return [{ level: 'ok', id: 'etcd-alarm', finding: 'no alarm is raised' }];
  return [...new Set(raised)].map((alarm) =>
    alarm === 'Nospace'
      ? {
          level: 'danger' as const,
          id: 'etcd-alarm',
          finding: 'the database has reached its quota: locks can be given back, but not taken',
          advice: 'compact and defragment it, or raise --quota-backend-bytes; then: etcdctl alarm disarm',
        }
      : {
          level: 'danger' as const,
          id: 'etcd-alarm',
          finding: `the alarm ${alarm} is raised: a member's data may be corrupt`,
          advice: 'replace the member before trusting this cluster with locks',
        },
  );
}

async function membership(transport: Transport): Promise<readonly Diagnosis[]> {
  const found = await ask(transport, 'list the members', (rpc, call) => rpc.memberList(call));
  if (found instanceof Error) return [unknown('etcd-members', 'the members', found)];
  return [quorum(found.members), ...notConfigured(transport, found.members)];
}

function quorum(members: readonly IMember[]): Diagnosis {
  const voters = members.filter(({ isLearner }) => !isLearner).length;
  const spare = Math.floor((voters - 1) / 2);
  if (spare > 0) {
    const finding = `${voters} members vote: locks survive the loss of ${spare}`;
    return { level: 'ok', id: 'etcd-members', finding };
  }
  return {
    level: 'warning',
    id: 'etcd-members',
    finding: `${voters === 1 ? 'there is one member' : `${voters} members vote`}: without one, no lock can be had`,
    advice: 'run three or five members',
  };
}

/** Fail-over reaches only the members that we know of. */
function notConfigured(transport: Transport, members: readonly IMember[]): readonly Diagnosis[] {
  if (transport.endpoints.length !== 1 || members.length === 1) return [];
  return [
    {
      level: 'info',
      id: 'etcd-endpoints',
      finding: `one address is configured for ${members.length} members`,
      advice: 'name all of them in the URL (etcd://h1,h2,h3), unless the address is a load balancer',
    },
  ];
}

async function member(transport: Transport, endpoint: Endpoint): Promise<readonly Diagnosis[]> {
  const only = transport.through(endpoint);
  const status = await ask(only, 'read the status', (rpc, call) => rpc.status(call));
  if (isHoldfastError(status, 'BACKEND_REFUSED'))
    return [unknown('etcd-member', `the status of ${endpoint.name}`, status)];
  if (status instanceof Error) {
    const finding = `${endpoint.name} does not answer: ${status.message}`;
    return [
      {
        level: 'warning',
        id: 'etcd-member',
        finding,
        advice: 'bring it back: the others carry on without spare',
      },
    ];
  }
  return [version(endpoint, status), health(endpoint, status)];
}

function version({ name }: Endpoint, status: IStatusResponse): Diagnosis {
  const [major = 0, minor = 0, patch = 0] = status.version.split(/[.+-]/).map(Number);
  const finding = `${name} is etcd ${status.version}`;
  const id = 'etcd-version';
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    return {
      level: 'danger',
      id,
      finding,
      advice: 'upgrade: 3.4 is the oldest version that this works with',
    };
  }
  const safe = SAFE_PATCH.get(`${major}.${minor}`);
  if (safe === undefined || patch >= safe) return { level: 'ok', id, finding };
  return {
    level: 'warning',
    id,
    finding: `${finding}: a leader that stood still may revoke the leases of live holders when it wakes up`,
    advice: `upgrade to ${major}.${minor}.${safe} or later, and let the resource check fencing tokens`,
  };
}

function health({ name }: Endpoint, status: IStatusResponse): Diagnosis {
  const id = 'etcd-member';
  if (status.leader === '0') {
    const finding = `${name} knows no leader: it is cut off from the others, or they have no majority`;
    return { level: 'danger', id, finding, advice: 'look at the network between the members' };
  }
  return { level: 'ok', id, finding: `${name} follows a leader` };
}

function unknown(id: string, what: string, error: Error): Diagnosis {
  return { level: 'info', id, finding: `${what} could not be read: ${error.message}` };
}

async function ask<T>(transport: Transport, what: string, send: Send<T>): Promise<T | Error> {
  try {
    return (await transport.call(what, send)).value;
  } catch (error) {
    return error as Error;
  }
}
