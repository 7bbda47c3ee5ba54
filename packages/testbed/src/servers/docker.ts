import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ContainerRuntimeClient } from 'testcontainers';
import { ContainerRuntime, type Network } from './docker-runtime.js';
import { imageOf } from './images.js';
import type { Runtime } from './node.js';
import type { ProcessSpec } from './spec.js';

/** A Docker engine that answers, on this machine. */
export interface Engine {
  /** Whether containers share this machine's loopback address, and with it our proxies. */
  readonly sharesLoopback: boolean;
  /**
   * Containers for processes that reach each other on the loopback address.
   *
   * @throws Error when an image can neither be found nor pulled
   */
  runtimes(specs: readonly ProcessSpec[]): Promise<Containers>;
}

export interface Containers {
  readonly runtimes: readonly Runtime[];
  release(): Promise<void>;
}

let probe: Promise<Engine | undefined> | undefined;

/** The engine of this machine. Asked for once in a process. */
export function findEngine(): Promise<Engine | undefined> {
  probe ??= mayHaveEngine() ? connectEngine() : Promise.resolve(undefined);
  return probe;
}

/** Loading the client takes most of a second: not where there is nothing to talk to. */
function mayHaveEngine(): boolean {
  if (process.platform === 'win32') return true;
  const runtimeDir = process.env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? 0}`;
  const places = [
    '/var/run/docker.sock',
    join(runtimeDir, 'docker.sock'),
    join(homedir(), '.docker/run/docker.sock'),
    join(homedir(), '.docker/desktop/docker.sock'),
    join(homedir(), '.testcontainers.properties'),
  ];
  return process.env.DOCKER_HOST !== undefined || places.some((path) => existsSync(path));
}

async function connectEngine(): Promise<Engine | undefined> {
  // Our supervisor removes the containers: the helper container that testcontainers would use need not be pulled.
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  try {
    const { getContainerRuntimeClient } = await import('testcontainers');
    return new LocalEngine(await getContainerRuntimeClient());
  } catch {
    return undefined;
  }
}

class LocalEngine implements Engine {
  readonly sharesLoopback: boolean;
  readonly #client: ContainerRuntimeClient;

  constructor(client: ContainerRuntimeClient) {
    this.#client = client;
    // Elsewhere the engine lives in a virtual machine, whose loopback address is another one.
    this.sharesLoopback =
      process.platform === 'linux' && process.env.HOLDFAST_TEST_DOCKER_NETWORK !== 'published';
  }

  async runtimes(specs: readonly ProcessSpec[]): Promise<Containers> {
    const images = specs.map((spec) => imageOf(spec.server));
    await Promise.all([...new Set(images)].map((image) => this.#need(image)));
    const { network, release } = await this.#network(specs);
    const runtimes = specs.map(
      (spec, index) =>
        new ContainerRuntime({ spec, image: images[index] ?? '', network, client: this.#client }),
    );
    return { runtimes, release };
  }

  async #need(image: string): Promise<void> {
    const { ImageName } = await import('testcontainers');
    const name = ImageName.fromString(image);
    if (await this.#client.image.exists(name)) return;
    try {
      await this.#client.image.pull(name);
    } catch (error) {
      throw new Error(`The Docker engine has no image ${image} and cannot pull it.`, { cause: error });
    }
  }

  async #network(specs: readonly ProcessSpec[]): Promise<{ network: Network; release(): Promise<void> }> {
    if (this.sharesLoopback) return { network: { kind: 'host' }, release: async () => undefined };
    if (specs.length === 1) return { network: { kind: 'published' }, release: async () => undefined };
    // A container that does nothing keeps the network namespace of the group, so that every server of it may go.
    const image = imageOf('redis');
    await this.#need(image);
    const ports = specs.flatMap((spec) => [spec.port, ...(spec.morePorts ?? [])]);
    const keeper: ProcessSpec = {
      server: 'redis',
      name: 'network',
      port: ports[0] ?? 0,
      morePorts: ports.slice(1),
      url: '',
      command: () => ['sleep', 'infinity'],
      ready: async () => undefined,
    };
    const runtime = new ContainerRuntime({
      spec: keeper,
      image,
      network: { kind: 'published' },
      client: this.#client,
    });
    await runtime.launch();
    return { network: { kind: 'shared', containerId: runtime.id }, release: () => runtime.remove() };
  }
}
