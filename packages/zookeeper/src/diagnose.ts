import { connect } from 'node:net';
import type { Clock, Diagnosis } from '@holdfast/core';
import type { Server, Settings } from './options.js';
import type { Session } from './session.js';

/** What `holdfast doctor` says about the servers. */
export async function diagnose(
  settings: Settings,
  session: Session,
  clock: Clock,
  until: number,
): Promise<readonly Diagnosis[]> {
  const [facts, members] = await Promise.all([
    Promise.all(settings.servers.map((server) => readServer(server, clock, until))),
    session.read('/zookeeper/config', until).catch(() => undefined),
  ]);
  return [
    sessionTimeout(settings.sessionTimeout, session.timeout),
    ensemble(facts, members?.data.toString() ?? ''),
    connections(facts),
    {
      level: 'info',
      id: 'zookeeper-jute-maxbuffer',
      finding: 'a server refuses messages above its jute.maxbuffer (1 MiB unless configured)',
      advice: 'one lock with some 10,000 waiters comes near it: raise jute.maxbuffer on the servers for more',
    },
  ];
}

function sessionTimeout(asked: number, negotiated: number): Diagnosis {
  const id = 'zookeeper-session-timeout';
  if (asked === negotiated) {
    return { level: 'ok', id, finding: `the session timeout is ${negotiated} ms, as asked for` };
  }
  return {
    level: 'warning',
    id,
    finding: `the session timeout is ${negotiated} ms, though ${asked} ms was asked for: a dead holder blocks others for that long`,
    advice:
      'change minSessionTimeout, maxSessionTimeout or tickTime of the servers, or the option sessionTimeout',
  };
}

function ensemble(facts: readonly Facts[], config: string): Diagnosis {
  const id = 'zookeeper-ensemble';
  const voters = config.match(/^server\.\d+=/gm)?.length ?? 0;
  if (voters > 1 || facts.some(({ mode }) => mode === 'leader' || mode === 'follower')) {
    const size = voters > 1 ? ` of ${voters} servers` : '';
    return { level: 'ok', id, finding: `an ensemble${size}: locks outlive the loss of a minority` };
  }
  if (voters === 1 || facts.some(({ mode }) => mode === 'standalone')) {
    return {
      level: 'warning',
      id,
      finding: 'a standalone server: while it is down nobody holds or gets a lock',
      advice: 'run an ensemble of three or five servers',
    };
  }
  return {
    level: 'info',
    id,
    finding: 'whether this is a standalone server cannot be seen from here',
    advice: 'allow the command "srvr" in 4lw.commands.whitelist',
  };
}

function connections(facts: readonly Facts[]): Diagnosis {
  const id = 'zookeeper-max-client-cnxns';
  const limits = facts.map(({ maxClientCnxns }) => maxClientCnxns).filter((limit) => limit !== undefined);
  if (limits.length === 0) {
    return {
      level: 'info',
      id,
      finding: 'maxClientCnxns cannot be seen from here (60 for each client address unless configured)',
      advice: 'allow the command "conf" in 4lw.commands.whitelist',
    };
  }
  const lowest = Math.min(...limits.map((limit) => (limit === 0 ? Number.POSITIVE_INFINITY : limit)));
  if (lowest === Number.POSITIVE_INFINITY) {
    return { level: 'ok', id, finding: 'the servers do not limit connections for each client address' };
  }
  return {
    level: 'info',
    id,
    finding: `the servers take ${lowest} connections from each client address; each Locks uses one`,
    advice: 'raise maxClientCnxns where many processes share an address',
  };
}

interface Facts {
  readonly mode?: string;
  readonly maxClientCnxns?: number;
}

async function readServer(server: Server, clock: Clock, until: number): Promise<Facts> {
  const [status, config] = await Promise.all([
    fourLetterWord(server, 'srvr', clock, until),
    fourLetterWord(server, 'conf', clock, until),
  ]);
  const mode = /^Mode: (\w+)/m.exec(status)?.[1];
  const limit = /^maxClientCnxns=(-?\d+)/m.exec(config)?.[1];
  return {
    ...(mode === undefined ? {} : { mode }),
    ...(limit === undefined ? {} : { maxClientCnxns: Math.max(0, Number(limit)) }),
  };
}

/** The server's answer to one of its plain-text commands; empty where it is away or does not allow the command. */
function fourLetterWord(server: Server, word: string, clock: Clock, until: number): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(server);
    const timer = clock.setTimer(until - clock.now(), () => socket.destroy());
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      timer.cancel();
      resolve(answer);
    });
  });
}
