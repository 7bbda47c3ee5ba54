import { randomUUID } from 'node:crypto';
import { Etcd3, type Lease } from 'etcd3';
import type { Subject } from '../subject.js';
import { holdfast } from './holdfast.js';

function client(url: string): Etcd3 {
  return new Etcd3({ hosts: url.replace('etcd://', '').split(',') });
}

/** One transaction that puts a key if it is absent, on a shared lease, and one delete. */
const raw: Subject = {
  name: 'raw transaction + delete',
  backend: 'etcd',
  kind: 'floor',
  waits: false,
  async open(url) {
    const etcd = client(url);
    const lease: Lease = etcd.lease(30);
    const id = await lease.grant();
    return {
      async acquire(name) {
        const key = `raw/${name}`;
        const taken = await etcd
          .if(key, 'Create', '==', 0)
          .then(etcd.put(key).value(randomUUID()).lease(id))
          .commit();
        if (!taken.succeeded) throw new Error('contended');
        return async () => etcd.delete().key(key).exec();
      },
      probe: () => etcd.put('raw/probe').value('x').exec(),
      async close() {
        await lease.revoke();
        etcd.close();
      },
    };
  },
};

/** The client's own lock, which does not wait: so it does not take part under contention. */
const clientLock: Subject = {
  name: 'etcd3 Lock',
  backend: 'etcd',
  kind: 'peer',
  waits: false,
  async open(url) {
    const etcd = client(url);
    return {
      async acquire(name) {
        const lock = await etcd.lock(`lock/${name}`).ttl(30).acquire();
        return () => lock.release();
      },
      close: async () => etcd.close(),
    };
  },
};

export const etcd = [raw, holdfast('etcd'), clientLock];
