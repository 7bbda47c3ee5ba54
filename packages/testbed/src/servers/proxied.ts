import { type FaultProxy, startProxy } from '../proxy/proxy.js';

/** A proxy before each of these ports, when asked for. */
export interface Fronts {
  readonly proxies: readonly FaultProxy[];
  /** The port by which clients know the server: its proxy's, or its own. */
  readonly known: readonly number[];
  stop(): Promise<void>;
}

export async function fronts(ports: readonly number[], proxied: boolean): Promise<Fronts> {
  const proxies = proxied
    ? await Promise.all(ports.map((port) => startProxy({ target: { host: '127.0.0.1', port } })))
    : [];
  return {
    proxies,
    known: ports.map((port, index) => proxies[index]?.port ?? port),
    async stop() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    },
  };
}
