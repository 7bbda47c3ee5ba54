export { zookeeperBackend } from './backend.js';
export { createBackend, driverParameters, schemes, zookeeper } from './module.js';
export { type Acl, options, type ZooKeeperBackendOptions, type ZooKeeperClient } from './options.js';
