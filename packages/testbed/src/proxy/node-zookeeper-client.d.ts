// What the tests use of node-zookeeper-client 1.1.3, which has no types of its own.

declare module 'node-zookeeper-client' {
  export interface ZooKeeperClient {
    once(event: 'connected', listener: (value: unknown) => void): void;
    connect(): void;
    close(): void;
    create(path: string, callback: (error: Error | null, path: string) => void): void;
  }
  export function createClient(
    servers: string,
    options: { readonly sessionTimeout: number; readonly retries: number },
  ): ZooKeeperClient;
}
