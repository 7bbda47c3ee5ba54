import { setTimeout as takes } from 'node:timers/promises';
import { connect } from '@holdfast/core';
import Fastify from 'fastify';
import { exclusive } from './exclusive.mjs';

/** One instance of the service, with a connection of its own. */
export async function startApp(orders) {
  const locks = await connect();
  const app = Fastify();
  app.addHook('onClose', () => locks.close());

  app.post(
    '/orders/:id/lines',
    exclusive(
      locks,
      ({ params }) => `order:${params.id}`,
      async ({ params, body }, { signal }) => {
        // Reads, works for a while, and writes: two at once would lose a line.
        const lines = orders.get(params.id) ?? [];
        await takes(20, undefined, { signal });
        orders.set(params.id, [...lines, body.line]);
        return { lines: lines.length + 1 };
      },
    ),
  );

  return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() };
}
