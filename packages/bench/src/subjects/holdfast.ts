import { connect } from '@holdfast/core';
import type { Backend, Subject } from '../subject.js';

/**
 * This project on its defaults, chosen by URL as people do.
 *
 * @param parameters of the URL, where servers that have only just started need some
 */
export function holdfast(backend: Backend, parameters = ''): Subject {
  return {
    name: 'holdfast',
    backend,
    kind: 'holdfast',
    waits: true,
    async open(url) {
      const locks = await connect(`${url}${parameters}`);
      return {
        async acquire(name, ttl) {
          const hold = await locks.lock(name).acquire(ttl === undefined ? {} : { ttl });
          return () => hold.release();
        },
        close: () => locks.close(),
      };
    },
  };
}
