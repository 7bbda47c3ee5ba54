import { isHoldfastError } from '@holdfast/core';

/**
 * A handler that serves one request at a time for each name, over all instances.
 *
 * @param {import('@holdfast/core').Locks} locks
 * @param {(request: import('fastify').FastifyRequest) => string} nameOf what the request must have to itself
 * @param {(request: import('fastify').FastifyRequest, hold: import('@holdfast/core').LockHandle) => Promise<unknown>} handler
 */
export function exclusive(locks, nameOf, handler) {
  return async (request, reply) => {
    try {
      // What is sent goes out when the lock has been given back: a client that asks again is not refused by itself.
      return await locks.lock(nameOf(request)).run((hold) => handler(request, hold), { wait: '5s' });
    } catch (error) {
      if (isHoldfastError(error, 'LOCK_TIMEOUT')) return reply.code(409).header('retry-after', '1').send();
      throw error;
    }
  };
}
