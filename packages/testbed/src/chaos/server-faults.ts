import type { ServerHandle, ServerNode } from '../servers/handle.js';
import type { ChaosFault, FaultContext, RunningTarget } from './target.js';

/** A target with servers that can be stopped. */
export interface Served extends RunningTarget {
  readonly servers: ServerHandle;
}

/** A node of the target's that something is done to. */
export type NodeChoice<R> = (running: R, context: FaultContext) => Promise<ServerNode> | ServerNode;

/** The only node there is, or the first. */
export function onlyNode({ servers }: Served): ServerNode {
  return servers.node;
}

/** Any of them. */
export function anyNode({ servers }: Served, { random }: FaultContext): ServerNode {
  return random.pick([servers.node, ...servers.nodes.slice(1)]);
}

/** Killed with −9, and started again with what it had on its disk. */
export function killed<R extends Served>(
  id: string,
  what: string,
  choose: NodeChoice<R>,
  more: Pick<ChaosFault, 'exclusion' | 'recoverWithin'> = {},
): ChaosFault<R> {
  const fault = endedAndStarted(id, `${what} is killed with −9, and started again`, choose, (node) =>
    node.kill(),
  );
  return { ...fault, ...more };
}

/** Ended in its own orderly way, which tells its clients, and started again. */
export function restarted<R extends Served>(
  id: string,
  what: string,
  choose: NodeChoice<R>,
  more: Pick<ChaosFault, 'exclusion' | 'recoverWithin'> = {},
): ChaosFault<R> {
  const how = `${what} is stopped in its orderly way, and started again`;
  return { ...endedAndStarted(id, how, choose, (node) => node.stop()), ...more };
}

function endedAndStarted<R extends Served>(
  id: string,
  description: string,
  choose: NodeChoice<R>,
  end: (node: ServerNode) => Promise<unknown>,
): ChaosFault<R> {
  return {
    id,
    description,
    touches: 'everybody',
    async inject(running, context) {
      const node = await choose(running, context);
      await end(node);
      return () => node.start();
    },
  };
}

/** Stands still: connections stay open, nothing is answered, clocks go on. */
export function paused<R extends Served>(id: string, what: string, choose: NodeChoice<R>): ChaosFault<R> {
  return {
    id,
    description: `${what} stands still past the ttl, and goes on`,
    touches: 'everybody',
    async inject(running, context) {
      const node = await choose(running, context);
      await node.pause();
      return () => node.resume();
    },
  };
}
