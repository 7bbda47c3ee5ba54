export type { EtcdBackend } from './backend.js';
export type { EtcdClient } from './client.js';
export { type FencedTransactionOptions, fencedTransaction, type Operation } from './fenced-transaction.js';
export { createBackend, driverParameters, etcd, etcdBackend, options, schemes } from './module.js';
export type { EtcdBackendOptions, Pem } from './options.js';
