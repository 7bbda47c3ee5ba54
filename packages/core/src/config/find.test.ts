import { chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { BackendModule, BackendOptions } from '../backend.js';
import { memoryBackend } from '../memory/backend.js';
import { findConfig } from './find.js';
import { resolveConnection } from './resolve.js';

let root = '';
const home = process.cwd();
const ENVIRONMENT = [
  'HOLDFAST_URL',
  'HOLDFAST_CONFIG',
  'KUBERNETES_SERVICE_HOST',
  'NODE_ENV',
  'XDG_STATE_HOME',
];

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-config-')));
  for (const name of ENVIRONMENT) vi.stubEnv(name, undefined);
});

afterEach(() => {
  process.chdir(home);
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  rmSync(root, { recursive: true });
});

function write(path: string, text: string): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function enter(path: string): void {
  mkdirSync(join(root, path), { recursive: true });
  process.chdir(join(root, path));
}

const MEMORY = { backend: 'memory', memory: { prefix: 'shop' } };

it.each([
  ['json', JSON.stringify(MEMORY)],
  ['yaml', 'backend: memory\nmemory: { prefix: shop }\n'],
  ['yml', 'backend: memory\nmemory:\n  prefix: shop\n'],
  ['ts', "const backend: string = 'memory';\nexport default { backend, memory: { prefix: 'shop' } };"],
  ['mts', "export default { backend: 'memory', memory: { prefix: 'shop' } } as const;"],
  ['mjs', "export default { backend: 'memory', memory: { prefix: 'shop' } };"],
  ['js', "module.exports = { backend: 'memory', memory: { prefix: 'shop' } };"],
])('reads holdfast.config.%s', async (extension, text) => {
  const file = write(`holdfast.config.${extension}`, text);
  enter('.');
  expect(await findConfig()).toMatchObject({ value: MEMORY, origin: { label: file, folder: root } });
});

it('looks upwards as far as the nearest package.json, the nearest file first', async () => {
  write('holdfast.config.json', JSON.stringify(MEMORY));
  write('app/package.json', '{}');
  const nearer = write('app/holdfast.config.json', JSON.stringify(MEMORY));
  enter('app/src/deep');
  expect(await findConfig()).toMatchObject({ origin: { label: nearer } });
});

it('does not look above the nearest .git', async () => {
  write('holdfast.config.json', JSON.stringify(MEMORY));
  write('app/.git/HEAD', '');
  vi.stubEnv('XDG_STATE_HOME', join(root, 'state'));
  vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  enter('app/src');
  expect(await findConfig()).toMatchObject({ origin: { label: 'the embedded default' } });
});

it('prefers HOLDFAST_URL, then HOLDFAST_CONFIG, then the nearest file', async () => {
  const near = write('holdfast.config.json', JSON.stringify(MEMORY));
  const named = write('elsewhere/named.yaml', 'backend: memory');
  enter('.');
  expect((await findConfig()).origin.label).toBe(near);
  vi.stubEnv('HOLDFAST_CONFIG', 'elsewhere/named.yaml');
  expect((await findConfig()).origin.label).toBe(named);
  vi.stubEnv('HOLDFAST_URL', 'memory:');
  expect(await findConfig()).toMatchObject({ value: 'memory:', origin: { label: 'HOLDFAST_URL' } });
});

it('says which variable named a file that is not there', async () => {
  vi.stubEnv('HOLDFAST_CONFIG', join(root, 'absent.json'));
  await expect(findConfig()).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining('absent.json (named by HOLDFAST_CONFIG) cannot be read'),
  });
});

it('refuses code that belongs to another user, and reads data of theirs', async () => {
  const code = write('holdfast.config.mjs', 'export default { backend: "memory" };');
  const data = write('data.json', '{ "backend": "memory" }');
  const uid = process.getuid?.() ?? 0;
  if (uid === 0) for (const file of [code, data]) chownSync(file, 12_345, 12_345);
  vi.spyOn(process, 'getuid').mockReturnValue(uid === 0 ? 0 : uid + 1);
  enter('.');
  await expect(findConfig()).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining('belongs to another user'),
  });
  vi.stubEnv('HOLDFAST_CONFIG', data);
  expect((await findConfig()).value).toEqual({ backend: 'memory' });
});

it('replaces variables in data, percent-encoded in a URL’s credentials', async () => {
  vi.stubEnv('PASSWORD', 'p@ss/w?rd');
  vi.stubEnv('HOST', 'h1:6379');
  write(
    'holdfast.config.yaml',
    [
      'backend: redis',
      'redis:',
      `  url: redis://app:\${PASSWORD}@\${HOST}/\${DB:-3}`,
      `  password: \${PASSWORD}`,
      `  note: $\${HOST}`,
    ].join('\n'),
  );
  enter('.');
  expect((await findConfig()).value).toEqual({
    backend: 'redis',
    redis: { url: 'redis://app:p%40ss%2Fw%3Frd@h1:6379/3', password: 'p@ss/w?rd', note: `\${HOST}` },
  });
});

it('names the variable that is missing and where it is used', async () => {
  write('holdfast.config.json', `{ "backend": "redis", "redis": { "url": "redis://\${NOT_SET_ANYWHERE}" } }`);
  enter('.');
  await expect(findConfig()).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringMatching(/redis\.url needs the environment variable NOT_SET_ANYWHERE/),
  });
});

it('leaves alone the variables of backends that are not chosen', async () => {
  vi.stubEnv('BACKEND', 'memory');
  vi.stubEnv('TTL', '5s');
  write(
    'holdfast.config.yaml',
    `backend: \${BACKEND}\nredis: { url: "\${NOT_SET_ANYWHERE}" }\ndefaults: { ttl: "\${TTL}" }\n`,
  );
  enter('.');
  const { value } = await findConfig();
  expect(value).toMatchObject({ backend: 'memory', defaults: { ttl: '5s' } });
  vi.stubEnv('BACKEND', 'redis');
  await expect(findConfig()).rejects.toMatchObject({ message: expect.stringContaining('NOT_SET_ANYWHERE') });
});

it.each([
  ['a name that is none', `\${A B}`],
  ['no end', `redis://\${HOME`],
  ['another inside', `\${NOT_SET_ANYWHERE:-\${HOME}}`],
])('a variable with %s is malformed, and shows nothing of it', async (_what, url) => {
  write('holdfast.config.json', JSON.stringify({ backend: 'redis', redis: { url } }));
  enter('.');
  await expect(findConfig()).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringMatching(/redis\.url has a malformed \$\{…\}: write/),
  });
});

it.each([
  ['an alias that names nothing', 'backend: redis\nredis: { password: *hunter2 }\n', 'begins with *'],
  ['a tag that nobody knows', 'backend: redis\nredis: { password: !hunter2 x }\n', 'line 2, column'],
  ['aliases without end', laughs(), 'begin with *'],
])('YAML with %s is a ConfigError, and quotes nothing of it', async (_what, text, message) => {
  write('holdfast.config.yaml', text);
  enter('.');
  const error = await findConfig().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringContaining(message) });
  expect(inspect(error, { depth: 9 })).not.toContain('hunter2');
});

/** Lists of lists of lists: small to write, and larger than any memory when written out. */
function laughs(): string {
  const levels = ['b', 'c', 'd', 'e'].map((name, index) => {
    const inner = `*${String.fromCharCode(97 + index)}`;
    return `${name}: &${name} [${Array(9).fill(inner).join(', ')}]`;
  });
  return ['a: &a [hunter2]', ...levels, 'backend: *e'].join('\n');
}

it('warns of nothing in a file that it cannot use', async () => {
  const warned = vi.spyOn(process, 'emitWarning');
  write('holdfast.config.yaml', 'backend: memory\n? [hunter2]\n: 1\n');
  enter('.');
  await expect(resolveConnection(undefined, {})).rejects.toMatchObject({ code: 'CONFIG' });
  expect(warned).not.toHaveBeenCalled();
});

it('takes the default export of a module that a compiler made CommonJS of', async () => {
  write('package.json', '{ "type": "commonjs" }');
  const compiled = 'Object.defineProperty(exports, "__esModule", { value: true }); exports.default =';
  write('holdfast.config.js', `${compiled} { backend: 'memory' };`);
  enter('.');
  expect((await findConfig()).value).toEqual({ backend: 'memory' });
});

it('says so when a module has no default export', async () => {
  write('holdfast.config.mjs', "export const config = { backend: 'memory' };");
  enter('.');
  await expect(findConfig()).rejects.toMatchObject({
    message: expect.stringMatching(/has no default export$/),
  });
});

it('names the key that was meant for "backend"', async () => {
  write('holdfast.config.yaml', 'Backend: memory\n');
  enter('.');
  await expect(resolveConnection(undefined, {})).rejects.toMatchObject({
    message: expect.stringContaining('backend is missing (did you write it as "Backend"?)'),
  });
});

it('shows a key without its escapes', async () => {
  write('holdfast.config.json', JSON.stringify({ backend: 'memory', '\u001b[31m\u202e': 1 }));
  enter('.');
  await expect(resolveConnection(undefined, {})).rejects.toMatchObject({
    message: expect.stringContaining(': \\u{1b}[31m\\u{202e} is not known'),
  });
});

it.each([
  [
    'json',
    '{ "backend": "redis",\n "redis": { "password": "hunter2" oops } }',
    'line 2, column 35: this is no JSON',
  ],
  [
    'yaml',
    'backend: redis\nredis:\n  password: "hunter2" oops\n',
    'line 3, column 23: this does not belong here',
  ],
])('says where broken %s is broken, and quotes nothing of it', async (extension, text, fault) => {
  const file = write(`holdfast.config.${extension}`, text);
  enter('.');
  const error = await findConfig().catch((reason: unknown) => reason as Error);
  const said = `${file} is not valid ${extension.toUpperCase()} at ${fault}`;
  expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringContaining(said) });
  expect(inspect(error, { depth: 9 })).not.toContain('hunter2');
});

it.each([
  ['ts', "export default { backend: 'memory' oops };"],
  ['mjs', "throw new Error('no vault today');"],
])('says why a .%s file cannot be loaded', async (extension, text) => {
  write(`holdfast.config.${extension}`, text);
  enter('.');
  await expect(findConfig()).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringMatching(/cannot be loaded: .*(Unexpected token|no vault today)/),
    cause: expect.anything(),
  });
});

it('names the file and the path in a complaint about its contents', async () => {
  const file = write('holdfast.config.json', '{ "backend": "memory", "defaults": { "tll": "5s" } }');
  enter('.');
  await expect(resolveConnection(undefined, {})).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining(`${file}: defaults.tll is not known (did you mean "ttl"?)`),
  });
});

it('uses a SQLite file in the state directory by default, and warns once, naming it', async () => {
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  vi.stubEnv('XDG_STATE_HOME', join(root, 'state'));
  enter('.');
  vi.resetModules();
  const { embeddedDefault } = await import('./embedded.js');
  const file = join(root, 'state/holdfast/locks.db');
  expect(await embeddedDefault()).toMatchObject({ value: `sqlite:${file}` });
  await embeddedDefault();
  expect(warning).toHaveBeenCalledTimes(1);
  expect(String(warning.mock.calls[0]?.[0])).toContain(file);
});

it.each([
  ['NODE_ENV', 'production'],
  ['KUBERNETES_SERVICE_HOST', '10.0.0.1'],
])('refuses the default where %s says that there are other hosts', async (name, value) => {
  vi.stubEnv(name, value);
  enter('.');
  await expect(findConfig()).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining(name),
  });
});

const PACKAGE = `
export const schemes = ['consul'];
export const options = { zone: 'string' };
export async function createBackend(options) {
  globalThis.holdfastTestBackend.given.push(options);
  return globalThis.holdfastTestBackend.make();
}
`;

it('imports somebody else’s backend from the config file’s folder', async () => {
  const given: BackendOptions[] = [];
  vi.stubGlobal('holdfastTestBackend', { given, make: memoryBackend });
  const folder = 'app/node_modules/@acme/holdfast-consul';
  write(
    `${folder}/package.json`,
    '{ "name": "@acme/holdfast-consul", "type": "module", "exports": { ".": { "default": "./index.js" } } }',
  );
  write(`${folder}/index.js`, PACKAGE);
  write(
    'app/holdfast.config.json',
    '{ "backend": "@acme/holdfast-consul", "@acme/holdfast-consul": { "url": "consul://h", "zone": "b" } }',
  );
  vi.stubEnv('HOLDFAST_CONFIG', join(root, 'app/holdfast.config.json'));
  enter('somewhere/else');
  await resolveConnection(undefined, {});
  expect(given).toEqual([{ url: 'consul://h', zone: 'b' }]);
});

it('gives the command that installs a package which is missing', async () => {
  await expect(resolveConnection({ backend: '@acme/not-there' }, {})).rejects.toMatchObject({
    code: 'MISSING_PACKAGE',
    message: expect.stringContaining('npm install @acme/not-there'),
  });
});

it('says so when a package is no backend', async () => {
  await expect(resolveConnection({ backend: 'yaml' }, {})).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining('exports no backend'),
  });
});

it('starts a relative SQLite path of a config file at that file’s folder', async () => {
  write('app one/holdfast.config.json', '{ "backend": "sqlite", "sqlite": { "url": "sqlite:./locks.db" } }');
  enter('app one');
  const given: BackendOptions[] = [];
  const module: BackendModule = {
    schemes: ['sqlite'],
    createBackend: (options) => {
      given.push(options);
      return memoryBackend();
    },
  };
  await resolveConnection(undefined, { backends: [module] });
  await resolveConnection('sqlite:./locks.db', { backends: [module] });
  expect(given).toEqual([{ url: `sqlite:${root}/app%20one/locks.db` }, { url: 'sqlite:./locks.db' }]);
});
