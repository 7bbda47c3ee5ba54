import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { ConfigError, InvalidArgumentError } from '@holdfast/core';
import type { EtcdClient } from './client.js';

/** A certificate or key: PEM text, its bytes, or the path of a PEM file. */
export type Pem = string | Buffer;

/** How to reach the servers: with a client of yours, or by URL, or by hosts. */
export interface EtcdBackendOptions {
  /** A client of etcd3, which stays yours to close. Its retries and circuit breakers do not apply to locks. */
  readonly client?: EtcdClient;
  /** `etcd://user:password@h1:2379,h2:2379`, or `etcds://…` for TLS. */
  readonly url?: string;
  /** `h1:2379`, `http://h1:2379`, or `https://h1:2379` for TLS. The port's default is 2379. */
  readonly hosts?: string | readonly string[];
  /** 1 to 64 of `A-Z a-z 0-9 . _ -`. Every key of ours begins with it and a slash. Default `holdfast`. */
  readonly prefix?: string;
  readonly username?: string;
  readonly password?: string;
  /** Authority that signed the servers' certificates. Default: those that Node trusts. */
  readonly ca?: Pem;
  /** Our certificate, where the server asks for one. */
  readonly cert?: Pem;
  /** The private key of `cert`. */
  readonly key?: Pem;
  /** The name that the servers' certificates must have. Default: the host that was dialled. */
  readonly serverName?: string;
}

/** Where to connect to, and how. */
export interface Target {
  /** `host:port` */
  readonly hosts: readonly string[];
  readonly tls: boolean;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly credentials?: Credentials | undefined;
  readonly serverName?: string | undefined;
}

interface Credentials {
  readonly rootCertificate: Buffer;
  readonly certChain?: Buffer;
  readonly privateKey?: Buffer;
}

/** @throws ConfigError, InvalidArgumentError */
export function targetOf({
  url,
  hosts,
  username,
  password,
  serverName,
  ...pems
}: EtcdBackendOptions): Target {
  if (url !== undefined && hosts !== undefined) {
    throw new InvalidArgumentError('hosts', hosts, 'either url or hosts, not both');
  }
  const place = url === undefined ? hostsOf(hosts ?? '127.0.0.1:2379') : parseUrl(url);
  const credentials = credentialsOf(pems);
  const user = username ?? place.username;
  const secret = password ?? place.password;
  if ((user === undefined) !== (secret === undefined)) {
    throw new ConfigError('etcd: a username needs a password, and a password a username');
  }
  const tls = place.tls || credentials !== undefined;
  return { hosts: place.hosts, tls, username: user, password: secret, credentials, serverName };
}

type Place = Pick<Target, 'hosts' | 'tls' | 'username' | 'password'>;

/** Several hosts with ports are no URL to a WHATWG parser: it is taken apart as text. The password is never shown. */
function parseUrl(url: string): Place {
  const parts = /^(etcds?):\/\/(?:([^/?#]*)@)?([^/?#@]*)\/?(?:\?([^#]*))?$/i.exec(url);
  if (parts === null)
    throw new ConfigError('etcd.url is not of the form etcd://user:password@h1:2379,h2:2379');
  const { 1: scheme = '', 2: userInfo, 3: hosts = '', 4: query = '' } = parts;
  if (query !== '')
    throw new ConfigError(
      `etcd.url has parameters that nobody knows: ${[...new URLSearchParams(query).keys()].join(', ')}`,
    );
  const [, username, password] = /^([^:]*)(?::(.*))?$/.exec(userInfo ?? '') ?? [];
  return {
    hosts: hosts.split(',').map(hostOf),
    tls: scheme.toLowerCase() === 'etcds',
    username: userInfo === undefined || username === undefined ? undefined : decode(username),
    password: password === undefined ? undefined : decode(password),
  };
}

function hostsOf(hosts: string | readonly string[]): Place {
  const list = typeof hosts === 'string' ? hosts.split(',') : hosts;
  if (list.length === 0) throw new InvalidArgumentError('hosts', hosts, 'at least one host');
  const secure = list.filter((host) => host.startsWith('https://')).length;
  if (secure !== 0 && secure !== list.length) {
    throw new InvalidArgumentError('hosts', hosts, 'all with https:// or none: TLS is for all of them');
  }
  return { hosts: list.map((host) => hostOf(host.replace(/^https?:\/\//, ''))), tls: secure > 0 };
}

function hostOf(text: string): string {
  const parts = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s@/]+)(?::(\d{1,5}))?$/.exec(text.trim());
  if (parts === null)
    throw new ConfigError(`etcd: ${JSON.stringify(text)} is not of the form host or host:port`);
  return `${parts[1]}:${parts[2] ?? '2379'}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ConfigError('etcd.url has a user or password that is not percent-encoded');
  }
}

function credentialsOf({
  ca,
  cert,
  key,
}: Pick<EtcdBackendOptions, 'ca' | 'cert' | 'key'>): Credentials | undefined {
  if ((cert === undefined) !== (key === undefined))
    throw new ConfigError('etcd: cert needs key, and key needs cert');
  if (ca === undefined && cert === undefined) return undefined;
  return {
    rootCertificate: ca === undefined ? Buffer.from(rootCertificates.join('\n')) : pem('ca', ca),
    ...(cert === undefined || key === undefined
      ? {}
      : { certChain: pem('cert', cert), privateKey: pem('key', key) }),
  };
}

function pem(option: string, given: Pem): Buffer {
  if (typeof given !== 'string') return given;
  if (given.includes('-----BEGIN ')) return Buffer.from(given);
  try {
    return readFileSync(given);
  } catch (error) {
    throw new ConfigError(`etcd.${option} names the file ${JSON.stringify(given)}, which cannot be read`, {
      cause: error,
    });
  }
}

export function checkPrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(prefix)) return;
  throw new InvalidArgumentError('prefix', prefix, '1 to 64 of A-Z a-z 0-9 . _ -');
}
