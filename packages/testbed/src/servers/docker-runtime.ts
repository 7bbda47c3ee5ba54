import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ContainerRuntimeClient, GenericContainer } from 'testcontainers';
import { supervisor } from '../supervisor/supervisor.js';
import type { Runtime } from './node.js';
import type { Place, ProcessSpec } from './spec.js';

/** How a container is reached: as if it were none, through published ports, or in another container's network. */
export type Network =
  | { readonly kind: 'host' }
  | { readonly kind: 'published' }
  | { readonly kind: 'shared'; readonly containerId: string };

type Container = ReturnType<ContainerRuntimeClient['container']['getById']>;

const HOME = '/holdfast';
const ORDERLY_END = 15_000;

/** Runs a server in a container of its own, which keeps its data until it is removed. */
export class ContainerRuntime implements Runtime {
  readonly pid = undefined;
  readonly #spec: ProcessSpec;
  readonly #image: string;
  readonly #network: Network;
  readonly #client: ContainerRuntimeClient;
  readonly #name: string;
  #container: Container | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(options: {
    readonly spec: ProcessSpec;
    readonly image: string;
    readonly network: Network;
    readonly client: ContainerRuntimeClient;
  }) {
    this.#spec = options.spec;
    this.#image = options.image;
    this.#network = options.network;
    this.#client = options.client;
    this.#name = `holdfast-${options.spec.name}-${randomBytes(6).toString('hex')}`;
  }

  /** Of the container, once it has been launched. */
  get id(): string {
    return this.#started.id;
  }

  get ended(): Promise<unknown> {
    return this.#ended;
  }

  async launch(): Promise<void> {
    if (this.#container === undefined) await this.#create();
    else await this.#container.start();
    this.#ended = this.#started.wait().catch(() => undefined);
  }

  async terminate(): Promise<void> {
    await this.#started.kill({ signal: this.#spec.stopSignal ?? 'SIGTERM' });
    const patience = new AbortController();
    const hang = sleep(ORDERLY_END, 'hang', { signal: patience.signal }).catch(() => 'ended');
    const outcome = await Promise.race([hang, this.#ended]);
    patience.abort();
    if (outcome === 'hang') await this.kill();
  }

  async kill(): Promise<void> {
    // It may have ended by itself.
    await this.#container?.kill({ signal: 'SIGKILL' }).catch(() => undefined);
    await this.#ended;
  }

  async pause(): Promise<void> {
    await this.#started.pause();
  }

  async resume(): Promise<void> {
    await this.#started.unpause();
  }

  async log(): Promise<string> {
    const bytes = (await this.#started.logs({ stdout: true, stderr: true })) as Buffer;
    return withoutFrames(bytes);
  }

  async remove(): Promise<void> {
    if (this.#container === undefined) return;
    await this.#container.remove({ force: true, v: true });
    supervisor().tell({ type: 'forget', key: this.#name });
  }

  get #started(): Container {
    if (this.#container === undefined) throw new Error(`${this.#spec.name} has not been started yet.`);
    return this.#container;
  }

  get #place(): Place {
    return this.#network.kind === 'host'
      ? { home: HOME, bind: '127.0.0.1', machine: '127.0.0.1' }
      : { home: HOME, bind: '0.0.0.0', machine: 'host.docker.internal' };
  }

  async #create(): Promise<void> {
    const { GenericContainer, Wait } = await import('testcontainers');
    const container = new GenericContainer(this.#image)
      // Whether it serves is asked by the server's own protocol, as everywhere.
      .withWaitStrategy(Wait.forAll([]))
      .withEnvironment({ ...this.#spec.env, ...this.#spec.docker?.env })
      .withCopyContentToContainer(this.#files());
    this.#connect(container);
    this.#setCommand(container);
    // To be removed before it exists: whenever we are killed, it goes.
    supervisor().tell({ type: 'finally', key: this.#name, request: this.#removal() });
    const started = await container.withName(this.#name).start();
    this.#container = this.#client.container.getById(started.getId());
  }

  #files(): { content: string; target: string; mode: number }[] {
    // Readable by whichever account the image uses.
    const own = Object.entries(this.#spec.files?.(this.#place) ?? {}).map(([name, content]) => ({
      content,
      target: `${HOME}/${name}`,
      mode: 0o644,
    }));
    const more = Object.entries(this.#spec.docker?.files ?? {}).map(([target, content]) => ({
      content,
      target,
      mode: 0o644,
    }));
    return [...own, ...more, { content: '', target: `${HOME}/data/.keep`, mode: 0o644 }];
  }

  #connect(container: GenericContainer): void {
    const { kind } = this.#network;
    if (kind === 'host') container.withNetworkMode('host');
    if (this.#network.kind === 'shared') container.withNetworkMode(`container:${this.#network.containerId}`);
    if (kind !== 'published') return;
    const ports = [this.#spec.port, ...(this.#spec.morePorts ?? [])];
    container
      .withExposedPorts(...ports.map((port) => ({ container: port, host: port })))
      .withExtraHosts([{ host: 'host.docker.internal', ipAddress: 'host-gateway' }]);
  }

  #setCommand(container: GenericContainer): void {
    const args = this.#spec.docker?.entryPointArgs?.(this.#place);
    if (args !== undefined) {
      container.withCommand([...args]);
      return;
    }
    const [program = '', ...rest] =
      this.#spec.docker?.command?.(this.#place) ?? this.#spec.command(this.#place);
    container.withEntrypoint([program]).withCommand([...rest]);
  }

  /** For the supervisor, which knows no Docker: the request by which the engine removes the container. */
  #removal() {
    const { socketPath, host, port } = this.#client.container.dockerode.modem as {
      socketPath?: string;
      host?: string;
      port?: number | string;
    };
    const path = `/containers/${this.#name}?force=1&v=1`;
    return socketPath === undefined
      ? { method: 'DELETE', path, host: host ?? '127.0.0.1', port: Number(port) }
      : { method: 'DELETE', path, socketPath };
  }
}

/** Takes the headers out of a container's log: a stream number and a length before each piece. */
function withoutFrames(bytes: Buffer): string {
  const pieces: Buffer[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 4);
    pieces.push(bytes.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(pieces).toString('utf8');
}
