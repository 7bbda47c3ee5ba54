import { connect } from '@holdfast/core';
import type { Backend, Subject } from '../subject.js';

/** This project on its defaults, chosen by URL as people do. */
export function holdfast(backend: Backend): Subject {
  return {
    name: 'holdfast',
    backend,
    kind: 'holdfast',
    waits: true,
    async open(url) {
      const locks = await connect(url);
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
