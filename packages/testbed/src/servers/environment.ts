import type { NodeState, ServerHandle, ServerName, ServerNode, StartOptions } from './handle.js';

/** The variable that may name a server which runs already: `HOLDFAST_TEST_REDIS_CLUSTER_URL`. */
export function variableOf(server: ServerName): string {
  return `HOLDFAST_TEST_${server.toUpperCase().replaceAll('-', '_')}_URL`;
}

const DEFAULT_PORTS: Readonly<Record<ServerName, number>> = {
  redis: 6379,
  'redis-sentinel': 26379,
  'redis-cluster': 6379,
  'redis-quorum': 6379,
  etcd: 2379,
  'etcd-cluster': 2379,
  zookeeper: 2181,
  'zookeeper-cluster': 2181,
  postgres: 5432,
  pgbouncer: 6432,
  mariadb: 3306,
  mysql: 3306,
};

/** The server that the environment names, unless the test needs one of its own. */
export function fromEnvironment(server: ServerName, options: StartOptions): ServerHandle | undefined {
  const url = process.env[variableOf(server)];
  // Any option that changes the server asks for one of the test's own.
  const own =
    options.own === true || Object.entries(options).some(([name, value]) => name !== 'own' && value);
  return url === undefined || url === '' || own ? undefined : foreignHandle(server, url);
}

/** A server that somebody else runs. */
export function foreignHandle(server: ServerName, url: string): ServerHandle {
  const nodes = addressesIn(url, DEFAULT_PORTS[server]).map(
    (at, index): ServerNode => new ForeignNode(server, `${server}-${index + 1}`, at),
  );
  const [node] = nodes;
  if (node === undefined) throw new Error(`${variableOf(server)} names no host.`);
  const stop = async () => undefined;
  return { server, provider: 'environment', url, nodes, node, stop, [Symbol.asyncDispose]: stop };
}

/** A URL taken apart where `URL` would not: several hosts, separated by commas. */
export function addressesIn(
  url: string,
  defaultPort: number,
): { readonly host: string; readonly port: number; readonly url: string }[] {
  const parts = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/is.exec(url);
  if (parts === null) throw new Error('A server URL of the environment has the form scheme://host:port.');
  const [, scheme = '', credentials = '', hosts = '', rest = ''] = parts;
  return hosts.split(',').map((address) => {
    const { 1: host = '', 2: port } = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(address) ?? [];
    const number = port === undefined ? defaultPort : Number(port);
    return { host, port: number, url: `${scheme}${credentials}${host}:${number}${rest}` };
  });
}

class ForeignNode implements ServerNode {
  readonly state: NodeState = 'running';
  readonly pid = undefined;
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly url: string;
  readonly #server: ServerName;

  constructor(server: ServerName, name: string, at: { host: string; port: number; url: string }) {
    this.#server = server;
    this.name = name;
    this.host = at.host;
    this.port = at.port;
    this.url = at.url;
  }

  get address(): string {
    return `${this.host}:${this.port}`;
  }

  start = (): Promise<void> => this.#refuse('started');
  stop = (): Promise<void> => this.#refuse('stopped');
  kill = (): Promise<void> => this.#refuse('killed');
  restart = (): Promise<void> => this.#refuse('restarted');
  pause = (): Promise<void> => this.#refuse('paused');
  resume = (): Promise<void> => this.#refuse('resumed');
  log = (): Promise<string> => Promise.resolve('');

  #refuse(what: string): Promise<never> {
    const message =
      `${this.name} cannot be ${what} from here: it comes from ${variableOf(this.#server)}. ` +
      'A test that needs to do so starts its server with `own: true`.';
    return Promise.reject(new Error(message));
  }
}
