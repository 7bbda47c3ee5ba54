/** The few methods that we call of packages whose types cannot be resolved. */
declare module 'redlock' {
  import type { Redis } from 'ioredis';

  // biome-ignore lint/style/noDefaultExport: it is how the package exports
  export default class Redlock {
    constructor(clients: readonly Redis[], settings?: { retryCount?: number });
    acquire(resources: string[], duration: number): Promise<{ release(): Promise<unknown> }>;
  }
}

declare module 'node-zookeeper-client' {
  interface Client {
    once(event: 'connected', listener: () => void): void;
    connect(): void;
    close(): void;
    mkdirp(path: string, done: (error: Error | null) => void): void;
    create(path: string, data: Buffer, mode: number, done: (error: Error | null, path: string) => void): void;
    getChildren(path: string, done: (error: Error | null, children: string[]) => void): void;
    setData(path: string, data: Buffer, version: number, done: (error: Error | null) => void): void;
    remove(path: string, version: number, done: (error: Error | null) => void): void;
  }
  const client: {
    createClient(servers: string, options?: { sessionTimeout?: number }): Client;
    readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number };
  };
  // biome-ignore lint/style/noDefaultExport: it is how the package exports
  export default client;
}
