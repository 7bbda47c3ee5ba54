export type { EtcdBackend } from './backend.js';
export type { EtcdClient } from './client.js';
export {
  createBackend,
  driverParameters,
  type EtcdBackendOptions,
  etcd,
  etcdBackend,
  options,
  type Pem,
  schemes,
} from './options.js';
