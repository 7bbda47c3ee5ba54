import { lstat, readFile, stat } from 'node:fs/promises';
import { dirname, extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ConfigError } from '../errors.js';
import { complaint } from './complaint.js';
import type { FoundConfig, Origin } from './config.js';
import { substituteConfig } from './environment.js';
import { jsonFault, parseYaml } from './faults.js';

type Reader = (file: string, origin: Origin) => Promise<unknown>;

const READERS: Readonly<Record<string, Reader>> = {
  ts: readTypeScript,
  mts: readTypeScript,
  js: readModule,
  mjs: readModule,
  json: readJson,
  yaml: readYaml,
  yml: readYaml,
};

/** In the order in which they are looked for. */
export const CONFIG_EXTENSIONS: readonly string[] = Object.keys(READERS);

/**
 * Reads a config file. Data (JSON, YAML) has `${VARIABLE}` replaced from the environment; code does as it likes,
 * and must belong to the user or root, since reading it runs it.
 *
 * @param namedBy the variable or argument that named the file, for the complaint
 * @throws ConfigError
 */
export async function readConfig(file: string, namedBy?: string): Promise<FoundConfig> {
  const extension = extname(file).slice(1);
  const reader = READERS[extension];
  const named = namedBy === undefined ? '' : ` (named by ${namedBy})`;
  if (reader === undefined) {
    // Nothing of it is shown: a URL has passwords.
    const what = /:\//.test(file)
      ? `what was given as a config file${named} is a URL: give it as url`
      : undefined;
    throw new ConfigError(
      what ?? `${file}${named} is no config file: its name must end in ${CONFIG_EXTENSIONS.join(', ')}`,
    );
  }
  const trusted = await isOurs(file).catch((cause) => {
    throw new ConfigError(`${file}${named} cannot be read: ${(cause as Error).message}`, { cause });
  });
  const isCode = reader === readTypeScript || reader === readModule;
  if (isCode && !trusted) {
    throw new ConfigError(
      `${file}${named} is code that belongs to another user; it must belong to you or to root, since reading it runs it`,
    );
  }
  const folder = dirname(file);
  // Next to a stranger's config there may be a stranger's node_modules: packages then come from core's own place.
  const resolveFrom = trusted ? folder : dirname(fileURLToPath(import.meta.url));
  const origin: Origin = { label: file, folder, resolveFrom };
  const value = await reader(file, origin);
  return { value: isCode ? value : substituteConfig(value, process.env, origin), origin };
}

/** True when the file, and the link that led to it, belong to this user or to root. */
async function isOurs(file: string): Promise<boolean> {
  const user = process.getuid?.();
  const owners = [(await stat(file)).uid, (await lstat(file)).uid];
  return user === undefined || owners.every((owner) => owner === user || owner === 0);
}

async function readTypeScript(file: string, origin: Origin): Promise<unknown> {
  const { createJiti } = await import('jiti');
  // No cache of compiled code: it would be kept in a folder for temporary files that others may write.
  const jiti = createJiti(file, { fsCache: false });
  return configOf(await loaded(origin, () => jiti.import(file)), origin);
}

async function readModule(file: string, origin: Origin): Promise<unknown> {
  return configOf(await loaded(origin, () => import(pathToFileURL(file).href)), origin);
}

async function loaded(origin: Origin, load: () => Promise<unknown>): Promise<unknown> {
  try {
    return await load();
  } catch (cause) {
    throw complaint(origin, '', `cannot be loaded: ${oneLine(cause)}`, cause);
  }
}

/** Messages of parsers come on several lines; they tell the place, and quote nothing. */
function oneLine(error: unknown): string {
  return String((error as Error | undefined)?.message ?? error)
    .replace(/\s+/g, ' ')
    .trim();
}

/** The default export, or what CommonJS exported. A compiler that made CommonJS of a module wraps it once more. */
function configOf(module: unknown, origin: Origin): unknown {
  if (typeof module !== 'object' || module === null) return module;
  if (!('default' in module)) {
    if ('backend' in module) return module;
    throw complaint(origin, '', 'has no default export');
  }
  const exported = module.default;
  const wrapped = typeof exported === 'object' && exported !== null && '__esModule' in exported;
  return wrapped && 'default' in exported ? exported.default : exported;
}

async function readJson(file: string, origin: Origin): Promise<unknown> {
  const text = await readText(file, origin);
  try {
    return JSON.parse(text);
  } catch {
    // V8's own message quotes the text around the fault, which may be a password, and does not always tell the place.
    throw complaint(origin, '', `is not valid JSON${await jsonFault(text)}`);
  }
}

async function readYaml(file: string, origin: Origin): Promise<unknown> {
  const { value, fault } = await parseYaml(await readText(file, origin));
  if (fault === undefined) return value;
  throw complaint(origin, '', `is not valid YAML${fault}`);
}

async function readText(file: string, origin: Origin): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).replace(/^\uFEFF/, '');
  } catch (cause) {
    throw complaint(origin, '', `cannot be read: ${(cause as Error).message}`, cause);
  }
}
