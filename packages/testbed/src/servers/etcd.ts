import { randomBytes } from 'node:crypto';
import { type FaultProxy, startProxy } from '../proxy/proxy.js';
import { fromEnvironment } from './environment.js';
import { askEtcd, type EtcdAccess } from './etcd-gateway.js';
import type { PartitionableHandle, ServerHandle, ServerName, ServerNode, StartOptions } from './handle.js';
import type { ManagedNode } from './node.js';
import { claimPorts } from './ports.js';
import { startAll, startGroup } from './provide.js';
import type { TlsFiles } from './redis.js';
import type { ProcessSpec } from './spec.js';
import { makeCertificate } from './tls.js';

export interface EtcdOptions extends StartOptions {
  /** Turns authentication on with this password for the user `root`, which the URL then carries. */
  readonly rootPassword?: string;
  /** Life of an auth token in seconds, to see it expire. Default 300. */
  readonly authTokenTtl?: number;
  /** TLS for clients, with a certificate that is its own authority. The URL is then `etcds://…`. */
  readonly tls?: boolean;
  /** Further flags without the dashes, such as `{ 'auto-compaction-retention': '1' }`. */
  readonly flags?: Readonly<Record<string, string>>;
}

export interface EtcdClusterOptions extends EtcdOptions {
  /** Default 3. */
  readonly members?: number;
  /** Members reach each other through proxies: `isolate` works. Default false. */
  readonly partitionable?: boolean;
}

export interface EtcdHandle extends PartitionableHandle {
  /** For etcd3's `hosts`: `http://127.0.0.1:2379`, one for each member. */
  readonly hosts: readonly string[];
  /** There when started with `tls`. */
  readonly tls?: TlsFiles;
  /** The member that leads now, by node index, as `via` (default the first that answers) sees it. */
  leader(via?: ServerNode): Promise<number>;
}

/** One member. URL `etcd://127.0.0.1:2379`. */
export function startEtcd(options: EtcdOptions = {}): Promise<EtcdHandle> {
  return start('etcd', { ...options, members: 1 }, options);
}

/** URL `etcd://h1,h2,h3`. Ready when all members agree on a leader. */
export function startEtcdCluster(options: EtcdClusterOptions = {}): Promise<EtcdHandle> {
  return start('etcd-cluster', options, options);
}

async function start(
  server: ServerName,
  options: EtcdClusterOptions,
  asked: EtcdOptions,
): Promise<EtcdHandle> {
  const foreign = fromEnvironment(server, asked);
  if (foreign !== undefined) return withMembers(foreign, { scheme: 'http' }, [], []);
  const { members = 3, rootPassword, partitionable = false } = options;
  const clients = await claimPorts(members);
  const peers = await claimPorts(members);
  const certificate = options.tls === true ? await makeCertificate() : undefined;
  // A member's peers know it by its proxy's address; it listens on its own.
  const proxies = partitionable
    ? await Promise.all(peers.numbers.map((port) => startProxy({ target: { host: '127.0.0.1', port } })))
    : [];
  const known = peers.numbers.map((port, index) => proxies[index]?.port ?? port);
  const access: EtcdAccess = {
    scheme: certificate === undefined ? 'http' : 'https',
    ...(certificate !== undefined && { ca: certificate.cert }),
    ...(rootPassword !== undefined && { rootPassword }),
  };
  const credentials = rootPassword === undefined ? '' : `root:${encodeURIComponent(rootPassword)}@`;
  const scheme = certificate === undefined ? 'etcd' : 'etcds';
  const initialCluster = known.map((port, index) => `etcd-${index + 1}=http://127.0.0.1:${port}`).join(',');
  const token = randomBytes(6).toString('hex');

  const specs = clients.numbers.map((port, index): ProcessSpec => {
    const name = `etcd-${index + 1}`;
    const flags: Record<string, string> = {
      name,
      'advertise-client-urls': `${access.scheme}://127.0.0.1:${port}`,
      'initial-advertise-peer-urls': `http://127.0.0.1:${known[index]}`,
      'initial-cluster': initialCluster,
      'initial-cluster-token': token,
      'log-level': 'warn',
      // Passwords are cheap to check, tokens are what is being tested.
      'bcrypt-cost': '4',
      'auth-token-ttl': String(options.authTokenTtl ?? 300),
      ...options.flags,
    };
    return {
      server,
      name,
      port,
      morePorts: [peers.numbers[index] ?? 0],
      url: `${scheme}://${credentials}127.0.0.1:${port}`,
      files: () =>
        certificate === undefined ? {} : { 'cert.pem': certificate.cert, 'key.pem': certificate.key },
      command: ({ home, bind }) => [
        'etcd',
        ...Object.entries({
          ...flags,
          'data-dir': `${home}/data`,
          'listen-client-urls': `${access.scheme}://${bind}:${port}`,
          'listen-peer-urls': `http://${bind}:${peers.numbers[index]}`,
          ...(certificate !== undefined && {
            'cert-file': `${home}/cert.pem`,
            'key-file': `${home}/key.pem`,
          }),
        }).map(([flag, value]) => `--${flag}=${value}`),
      ],
      ready: async () => {
        const { health } = await askEtcd<{ health: unknown }>(port, access, '/health');
        if (String(health) !== 'true') throw new Error('the member is not healthy');
      },
    };
  });

  const handle = await startGroup({
    server,
    url: `${scheme}://${credentials}${clients.addresses}`,
    specs,
    where: partitionable ? 'our-network' : 'anywhere',
    async bringUp(nodes) {
      await startAll(nodes);
      if (rootPassword !== undefined) await enableAuth(nodes, access);
    },
    async release() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await certificate?.remove();
      clients.release();
      peers.release();
    },
  });
  const ids = partitionable ? await memberIds(handle, access) : [];
  const tls = certificate && { tls: { ca: certificate.cert, caFile: certificate.certFile } };
  return { ...withMembers(handle, access, proxies, ids), ...tls };
}

function withMembers(
  handle: ServerHandle,
  access: EtcdAccess,
  proxies: readonly FaultProxy[],
  ids: readonly string[],
): EtcdHandle {
  return {
    ...handle,
    hosts: handle.nodes.map((node) => `${access.scheme}://${node.address}`),
    async leader(via) {
      const asked = via === undefined ? handle.nodes.filter((node) => node.state === 'running') : [via];
      const { leader } = await Promise.any(asked.map((node) => status(node, access)));
      if (leader === '0') throw new Error('There is no leader now.');
      const all = await Promise.allSettled(handle.nodes.map((node) => status(node, access)));
      const index = all.findIndex((answer) => answer.status === 'fulfilled' && answer.value.id === leader);
      if (index === -1) throw new Error('The leader does not answer.');
      return index;
    },
    isolate(node) {
      const index = handle.nodes.indexOf(node);
      const id = ids[index];
      if (id === undefined)
        throw new Error('Only a group started with `partitionable: true` can be cut apart.');
      // etcd says in every request to a peer who sends it.
      const sender = `X-Server-From: ${id}\r\n`;
      proxies.forEach((proxy, at) => {
        if (at === index) proxy.blackHole();
        else proxy.blackHole('both', { only: ({ opening }) => opening.includes(sender) });
      });
    },
    async rejoin() {
      await Promise.all(proxies.map((proxy) => proxy.heal()));
    },
  };
}

async function status(
  node: ServerNode,
  access: EtcdAccess,
): Promise<{ readonly id: string; readonly leader: string }> {
  const answer = await askEtcd<{ header: { member_id: string }; leader?: string }>(
    node.port,
    access,
    '/v3/maintenance/status',
    {},
  );
  return { id: answer.header.member_id, leader: answer.leader ?? '0' };
}

/** The members' ids, as etcd writes them in its requests. */
async function memberIds(handle: ServerHandle, access: EtcdAccess): Promise<string[]> {
  const all = await Promise.all(handle.nodes.map((node) => status(node, access)));
  return all.map(({ id }) => BigInt(id).toString(16));
}

async function enableAuth(nodes: readonly ManagedNode[], access: EtcdAccess): Promise<void> {
  const port = nodes[0]?.port ?? 0;
  const { rootPassword, ...open } = access;
  await askEtcd(port, open, '/v3/auth/user/add', { name: 'root', password: rootPassword });
  await askEtcd(port, open, '/v3/auth/role/add', { name: 'root' });
  await askEtcd(port, open, '/v3/auth/user/grant', { user: 'root', role: 'root' });
  await askEtcd(port, open, '/v3/auth/enable', {});
}
