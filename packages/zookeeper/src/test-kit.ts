import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { createLocks, type Locks, type LocksOptions, systemClock } from '@holdfast/core';
import { type FaultProxy, type ServerNode, startProxy } from '@holdfast/testbed';
import { expect, onTestFinished, vi } from 'vitest';
import { zookeeperBackend } from './backend.js';
import { encodeName } from './names.js';
import { readOptions } from './options.js';
import { type Session, Sessions } from './session.js';

/** Every time bound of the tests is multiplied by this. */
export const FACTOR = Number(process.env.HOLDFAST_TIME_FACTOR ?? 1);
/** ms of a session in tests. */
export const SESSION = 2000 * FACTOR;
/** Far beyond what anything here should take. */
export const PATIENCE = 20_000 * FACTOR;

export const soon = (): number => systemClock.now() + PATIENCE;

/** Polls what tells nobody when it changes. */
export const until = (isSo: () => boolean | Promise<boolean>): Promise<void> =>
  vi.waitFor(async () => expect(await isSo()).toBe(true), { timeout: PATIENCE, interval: 5 });

/** A proxy in front of the server, for the length of the test. */
export async function proxyTo(target: ServerNode): Promise<FaultProxy> {
  const proxy = await startProxy({ target });
  onTestFinished(() => proxy.stop());
  return proxy;
}

let tenants = 0;

/** A tenant of the test's own, and a session that looks at its nodes. */
export class Tenant {
  readonly prefix: string = `test-${process.pid}-${tenants++}`;
  readonly #servers: readonly { readonly address: string }[];
  #observer: Sessions | undefined;

  constructor(...servers: readonly { readonly address: string }[]) {
    this.#servers = servers;
  }

  /** Locks on these servers, or on all. */
  async locks(servers = this.#servers, options: LocksOptions = {}, path = ''): Promise<Locks> {
    const url = `zookeeper://${servers.map(({ address }) => address).join(',')}${path}`;
    const backend = zookeeperBackend({ url, prefix: this.prefix, sessionTimeout: SESSION });
    const locks = await createLocks(backend, options);
    onTestFinished(() => locks.close());
    return locks;
  }

  /** A session beside the locks. */
  async session(): Promise<Session> {
    if (this.#observer === undefined) {
      const settings = readOptions({
        url: `zookeeper://${this.#servers.map(({ address }) => address).join(',')}`,
        prefix: 'observer',
        sessionTimeout: SESSION,
      });
      const home = `${settings.root}/sessions`;
      const observer = new Sessions(
        { ...settings, home, commandTimeout: PATIENCE },
        systemClock,
        () => undefined,
      );
      onTestFinished(() => observer.close(soon()));
      this.#observer = observer;
    }
    const session = await this.#observer.ready(soon());
    // What others have written is to be seen, on whichever server.
    await session.heartbeat(soon());
    return session;
  }

  lockPath(name: string): string {
    return `/${this.prefix}/locks/${encodeName(name)}`;
  }

  /** The nodes of a lock's queue. */
  async children(name: string): Promise<readonly string[]> {
    return (await (await this.session()).children(this.lockPath(name), soon())) ?? [];
  }

  /** The nodes of locks. */
  async parents(): Promise<readonly string[]> {
    return (await (await this.session()).children(`/${this.prefix}/locks`, soon())) ?? [];
  }
}

/** Resolves when somebody waits for the name. */
export function whenWaiting(locks: Locks, name: string): Promise<void> {
  return new Promise((resolve) => {
    const stop = locks.on('waiting', (event) => {
      if (event.name !== name) return;
      stop();
      resolve();
    });
  });
}

/** The server's answer to a plain-text command. */
export function fourLetterWord(node: ServerNode, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(node.port, node.host, () => socket.write(word));
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

/** Requests that the server has been sent, by everybody. */
export async function received(node: ServerNode): Promise<number> {
  return Number(/^Received: (\d+)/m.exec(await fourLetterWord(node, 'srvr'))?.[1]);
}

/** What tests use of node-zookeeper-client's public face, which has no types of its own. */
export interface RawClient {
  once(event: 'connected', listener: () => void): void;
  connect(): void;
  close(): void;
  addAuthInfo(scheme: string, auth: Buffer): void;
  getSessionTimeout(): number;
  getSessionId(): Buffer;
  getState(): { readonly name: string };
  create(path: string, acl: readonly object[], done: (error: Error | null) => void): void;
  create(path: string, data: Buffer, mode: number, done: (error: Error | null, path: string) => void): void;
  exists(path: string, done: (error: Error | null, stat: unknown) => void): void;
  remove(path: string, done: (error: Error | null) => void): void;
}

interface RawLibrary {
  createClient(servers: string, options: { sessionTimeout: number }): RawClient;
  readonly ACL: new (permission: number, id: object) => object;
  readonly Id: new (scheme: string, id: string) => object;
  readonly CreateMode: { readonly EPHEMERAL: number };
}

export const rawLibrary = createRequire(import.meta.url)('node-zookeeper-client') as RawLibrary;

/** A client as an application has one; not connected yet. */
export function rawClient(servers: string, options = { sessionTimeout: SESSION }): RawClient {
  return rawLibrary.createClient(servers, options);
}

/** The same, connected for the length of the test. */
export async function connectedClient(node: ServerNode, login?: string): Promise<RawClient> {
  const client = rawClient(node.address);
  if (login !== undefined) client.addAuthInfo('digest', Buffer.from(login));
  const connected = new Promise<void>((resolve) => client.once('connected', resolve));
  client.connect();
  await connected;
  onTestFinished(() => client.close());
  return client;
}
