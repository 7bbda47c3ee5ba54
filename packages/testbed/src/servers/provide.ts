import { type Engine, findEngine } from './docker.js';
import type { ProviderName, ServerHandle, ServerName, ServerNode } from './handle.js';
import { needPrograms } from './install.js';
import { LocalRuntime } from './local.js';
import { ManagedNode, type Runtime } from './node.js';
import type { ProcessSpec } from './spec.js';

/** Processes that a provider has made ready to start; none runs yet. */
export interface Provided {
  readonly provider: ProviderName;
  readonly nodes: readonly ManagedNode[];
  /** Kills and removes everything. */
  remove(): Promise<void>;
}

export interface ProvideOptions {
  /**
   * `our-network` where the processes must reach proxies of ours, `local` for what no container can do. Default
   * `anywhere`.
   */
  readonly where?: 'anywhere' | 'our-network' | 'local';
}

/**
 * Makes nodes of the specifications, in Docker or on this machine. Those given together reach each other on the
 * loopback address. `HOLDFAST_TEST_PROVIDER` (`docker` or `local`) leaves no choice.
 *
 * @throws Error naming the server and the ways to get it
 */
export async function provide(
  server: ServerName,
  specs: readonly ProcessSpec[],
  { where = 'anywhere' }: ProvideOptions = {},
): Promise<Provided> {
  const forced = process.env.HOLDFAST_TEST_PROVIDER;
  const engine = where === 'local' || forced === 'local' ? undefined : await findEngine();
  if (engine === undefined || (where === 'our-network' && !engine.sharesLoopback)) {
    if (forced === 'docker') throw new Error(`No Docker engine answers, which was to run ${server}.`);
    needPrograms(server);
    return local(specs);
  }
  try {
    return await inDocker(engine, specs);
  } catch (dockerError) {
    if (forced === 'docker') throw dockerError;
    // An engine without a way to images is as good as none.
    try {
      needPrograms(server);
    } catch (error) {
      throw new AggregateError(
        [dockerError, error],
        `${server} can be had neither from Docker nor on this machine.`,
      );
    }
    return local(specs);
  }
}

function local(specs: readonly ProcessSpec[]): Provided {
  const runtimes = specs.map((spec) => new LocalRuntime(spec));
  return provided('local', specs, runtimes, async () => undefined);
}

async function inDocker(engine: Engine, specs: readonly ProcessSpec[]): Promise<Provided> {
  const { runtimes, release } = await engine.runtimes(specs);
  return provided('docker', specs, runtimes, release);
}

function provided(
  provider: ProviderName,
  specs: readonly ProcessSpec[],
  runtimes: readonly Runtime[],
  release: () => Promise<void>,
): Provided {
  const nodes = runtimes.map((runtime, index) => {
    const spec = specs[index];
    if (spec === undefined) throw new Error('More processes than specifications.');
    return new ManagedNode(spec, runtime);
  });
  return {
    provider,
    nodes,
    async remove() {
      await Promise.all(nodes.map((node) => node.remove()));
      await release();
    },
  };
}

/** What `startGroup` needs to know beyond the specifications. */
export interface Group extends ProvideOptions {
  readonly server: ServerName;
  readonly url: string;
  readonly specs: readonly ProcessSpec[];
  /** Brings the nodes up. Default: all at once, until each serves. */
  readonly bringUp?: (nodes: readonly ManagedNode[]) => Promise<void>;
  /** What else goes with the handle: ports, proxies. Called once, also when the start fails. */
  readonly release: () => Promise<void> | void;
}

/** Starts the processes of one handle. When anything fails, everything is removed. */
export async function startGroup(group: Group): Promise<ServerHandle> {
  let stopped: Promise<void> | undefined;
  let made: Provided | undefined;
  const stop = (): Promise<void> => {
    stopped ??= (async () => {
      await made?.remove();
      await group.release();
    })();
    return stopped;
  };
  try {
    made = await provide(group.server, group.specs, group);
    await (group.bringUp ?? startAll)(made.nodes);
    const nodes: readonly ServerNode[] = made.nodes;
    const [node] = nodes;
    if (node === undefined) throw new Error(`${group.server} has no nodes.`);
    return {
      server: group.server,
      provider: made.provider,
      url: group.url,
      nodes,
      node,
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${group.server} could not be started. ${why}`, { cause: error });
  }
}

/** Launches all, then waits until each serves: members of a group may serve only together. */
export async function startAll(nodes: readonly ManagedNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.launch()));
  await Promise.all(nodes.map((node) => node.serving()));
}
