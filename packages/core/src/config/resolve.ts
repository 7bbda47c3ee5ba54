import type { BackendModule, BackendOptions, LockBackend } from '../backend.js';
import { systemClock } from '../clock.js';
import { ConfigError, InvalidArgumentError } from '../errors.js';
import type { LocksOptions } from '../locks.js';
import { memoryBackend } from '../memory/backend.js';
import { MemoryStore } from '../memory/store.js';
import { BACKEND_NAMES, backendOfScheme, KNOWN_SCHEMES, knownPackage } from './backends.js';
import { complaint, join, nearest, suggestion } from './complaint.js';
import type { FoundConfig, HoldfastConfig, Origin } from './config.js';
import { isBackendModule } from './modules.js';
import { checkConfig, checkSection } from './schema.js';
import { checkedUrl, schemeOf, splitQuery, sqliteUrl } from './url.js';

/** What `connect()` was given besides the configuration. */
export interface ConnectOptions {
  /** Backends that the application imported: for the schemes of these nothing is resolved or imported. */
  readonly backends?: readonly BackendModule[];
  /** A config file to read instead of looking for one: takes the place of the first argument. */
  readonly configFile?: string;
}

/** A backend, not opened yet, and how its locks are to behave. */
export interface Connection {
  readonly backend: LockBackend;
  readonly options: LocksOptions;
}

/**
 * Finds and checks the configuration, and makes the backend that it describes. Nothing is sent.
 *
 * @throws ConfigError, MissingPackageError, InvalidArgumentError
 */
export async function resolveConnection(
  config: string | URL | HoldfastConfig | undefined,
  { backends = [], configFile }: ConnectOptions,
): Promise<Connection> {
  const modules = checkModules(backends);
  const { value, origin } = await chosenConfig(config, configFile);
  if (typeof value === 'string') return { backend: await fromUrl(value, modules, origin), options: {} };
  const { backend, section, options } = checkConfig(value, origin);
  return { backend: await fromSection(backend, section, modules, origin), options };
}

async function chosenConfig(
  config: string | URL | HoldfastConfig | undefined,
  configFile: string | undefined,
): Promise<FoundConfig> {
  if (config !== undefined && configFile !== undefined) {
    throw new InvalidArgumentError('configFile', configFile, 'nothing while a configuration is given too');
  }
  if (config === undefined) {
    // Only this half touches files and the environment: in a browser the rest works without it.
    const { configIn, findConfig } = await import('./find.js');
    return configFile === undefined ? findConfig() : configIn(configFile);
  }
  const value = config instanceof URL ? config.href : config;
  if (typeof value === 'string') return { value, origin: { label: 'the URL given to connect()' } };
  if (typeof value === 'object' && value !== null) {
    return { value, origin: { label: 'the config given to connect()' } };
  }
  throw new InvalidArgumentError('config', value, 'a URL, a HoldfastConfig, or nothing');
}

function checkModules(backends: readonly BackendModule[]): readonly BackendModule[] {
  for (const [index, backend] of backends.entries()) {
    if (isBackendModule(backend)) continue;
    throw new InvalidArgumentError(
      `backends[${index}]`,
      backend,
      'a BackendModule: { schemes, createBackend }',
    );
  }
  return backends;
}

async function fromUrl(
  text: string,
  modules: readonly BackendModule[],
  origin: Origin,
): Promise<LockBackend> {
  const url = text.trim();
  const scheme = schemeOf(url);
  const module = modules.find(({ schemes }) => scheme !== undefined && schemes.includes(scheme));
  const name = scheme === undefined ? undefined : backendOfScheme(scheme);
  if (module === undefined && name === undefined) {
    const known = [...KNOWN_SCHEMES, ...modules.flatMap(({ schemes }) => schemes)];
    // The text itself is not shown: where the scheme is wrong, anything in it may be a password.
    const hint = suggestion(scheme ?? '', known);
    throw complaint(
      origin,
      '',
      `has no known scheme${hint}; allowed: ${known.map((each) => `${each}:`).join(' ')}`,
    );
  }
  return create({ url }, module ?? (await ourModule(name ?? '', origin)), origin, '');
}

async function fromSection(
  name: string,
  section: object,
  modules: readonly BackendModule[],
  origin: Origin,
): Promise<LockBackend> {
  const given = 'url' in section ? section.url : undefined;
  const url = given instanceof URL ? given.href : typeof given === 'string' ? given.trim() : given;
  const scheme = typeof url === 'string' ? schemeOf(url) : name;
  const imported = modules.find(({ schemes }) => scheme !== undefined && schemes.includes(scheme));
  const module = imported ?? (await ourModule(name, origin));
  const allowed = knownPackage(name)?.schemes ?? module.schemes;
  if (typeof url === 'string' && (scheme === undefined || !allowed.includes(scheme))) {
    const list = allowed.map((each) => `${each}:`).join(' ');
    throw complaint(origin, join(name, 'url'), `is not for the backend ${name}; allowed: ${list}`);
  }
  if (url === undefined && knownPackage(name)?.packageName === '@holdfast/sql') {
    throw complaint(origin, join(name, 'url'), 'is missing: it names the database');
  }
  return create(section, module, origin, name);
}

/** The module of a backend by its name in a config: memory, one of ours, or somebody's package. */
async function ourModule(name: string, origin: Origin): Promise<BackendModule> {
  if (name === 'memory') return MEMORY;
  const { importBackend } = await import('./packages.js');
  const known = knownPackage(name);
  if (known !== undefined) return importBackend(known.packageName, origin);
  // "reddis" is a slip rather than a package to be installed from who knows whom.
  const meant = nearest(name, BACKEND_NAMES);
  if (meant === undefined || name.startsWith('@')) return importBackend(name, origin);
  throw complaint(origin, 'backend', `names no backend${suggestion(name, BACKEND_NAMES)}`);
}

const MEMORY: BackendModule = {
  schemes: ['memory'],
  createBackend: ({ url, prefix }) => {
    if (url !== undefined && !/^memory:(\/\/)?$/.test(url)) {
      throw new ConfigError('memory: takes no name; `prefix` keeps tenants apart, as in memory:?prefix=shop');
    }
    return memoryBackend({ store: processStore(), ...(prefix === undefined ? {} : { prefix }) });
  },
};

const STORE = Symbol.for('holdfast.memory-store/1');

/** One store for the process, whichever copy of core asks: every `connect('memory:')` meets. */
function processStore(): MemoryStore {
  const shared = globalThis as { [STORE]?: MemoryStore };
  shared[STORE] ??= new MemoryStore(systemClock);
  return shared[STORE];
}

async function create(
  section: object,
  module: BackendModule,
  origin: Origin,
  place: string,
): Promise<LockBackend> {
  const { url: given, ...rest } = checkSection(section, module, origin, place);
  if (typeof given !== 'string') return module.createBackend(rest);
  const url = given.trim();
  const urlPlace = place === '' ? '' : join(place, 'url');
  const split = splitQuery(isServer(url) ? checkedUrl(url, origin, urlPlace) : url, module, origin, urlPlace);
  const parameters = checkSection(split.parameters, module, origin, urlPlace);
  const twice = Object.keys(parameters).find((name) => name in rest);
  if (twice !== undefined)
    throw complaint(origin, join(place, twice), 'is also a parameter of the URL: give it once');
  const options: BackendOptions = { ...rest, ...parameters, url: anchored(split.url, origin) };
  return module.createBackend(options);
}

/** Whether a URL names servers of a backend of ours; what others mean by theirs is not known here. */
function isServer(url: string): boolean {
  const backend = backendOfScheme(schemeOf(url) ?? '');
  return backend !== undefined && backend !== 'sqlite' && backend !== 'memory';
}

/** A relative SQLite path in a config file starts at the file's folder, or each working directory had locks of its own. */
function anchored(url: string, origin: Origin): string {
  const normal = url.replace(/^[A-Za-z][A-Za-z0-9+.-]*:/, (scheme) => scheme.toLowerCase());
  const path = /^sqlite:(?!\/|:)(.+)$/s.exec(normal)?.[1];
  if (path === undefined || origin.folder === undefined) return normal;
  return `${sqliteUrl(origin.folder)}/${path.replace(/^\.\//, '')}`;
}
