import { z } from 'zod';
import type { BackendModule, OptionType } from '../backend.js';
import type { LocksOptions } from '../locks.js';
import { BACKEND_NAMES } from './backends.js';
import { complainOf, complaint, suggestion } from './complaint.js';
import type { Origin } from './config.js';
import * as values from './values.js';

/** A config whose every key is known and whose section is still the backend's to check. */
export interface CheckedConfig {
  readonly backend: string;
  readonly section: Readonly<Record<string, unknown>>;
  readonly options: LocksOptions;
}

const DEFAULTS = {
  ttl: values.holdTime().optional(),
  wait: values.duration({ zero: true, infinite: true }).optional(),
  renew: values.flag().optional(),
  maxHold: values.duration({ infinite: true, max: 365 * 86_400_000 }).optional(),
  minHold: values.holdTime().optional(),
  reentrant: values.flag().optional(),
  metadata: values.text().optional(),
};

const TOP = {
  $schema: z.unknown().optional(),
  backend: z.string({ error: `is missing; it names the backend: ${BACKEND_NAMES.join(', ')}, or a package` }),
  defaults: z.strictObject(DEFAULTS, { error: withKeys('must be an object') }).optional(),
  fenceOffset: values.bigint().optional(),
  unavailableAfter: values.duration({}).optional(),
  commandTimeout: values.duration({}).optional(),
};

/** An npm package's name: nothing that could be a path. */
const PACKAGE = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

/**
 * Checks everything but the backend's section, whose keys only the backend's package knows.
 *
 * @throws ConfigError
 */
export function checkConfig(value: unknown, origin: Origin): CheckedConfig {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw complaint(origin, '', 'must hold an object with the key "backend"');
  }
  const name = 'backend' in value ? value.backend : undefined;
  const sections = typeof name === 'string' ? new Set([...BACKEND_NAMES, name]) : new Set(BACKEND_NAMES);
  const section = z.looseObject({}, { error: 'must be an object' });
  const shape = { ...TOP, ...Object.fromEntries([...sections].map((key) => [key, section.optional()])) };
  const result = z
    .strictObject({ ...shape, ...TOP }, { error: withKeys('must be an object') })
    .safeParse(value);
  if (!result.success) {
    throw complainOf(result.error, origin, '', (path) => Object.keys(path === 'defaults' ? DEFAULTS : shape));
  }

  const { backend, defaults, fenceOffset, unavailableAfter, commandTimeout } = result.data;
  if (!PACKAGE.test(backend) || backend in TOP) {
    const hint = suggestion(backend, BACKEND_NAMES);
    throw complaint(origin, 'backend', `must be one of ${BACKEND_NAMES.join(', ')}, or a package${hint}`);
  }
  return {
    backend,
    section:
      (value as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>)[backend] ?? {},
    options: defined({
      defaults: defaults && defined(defaults),
      fenceOffset,
      unavailableAfter,
      commandTimeout,
    }),
  };
}

const OPTION: Readonly<Record<OptionType, () => z.ZodType>> = {
  string: values.text,
  integer: values.integer,
  boolean: values.flag,
  duration: () => values.duration({ zero: true }),
  object: values.object,
};

/**
 * Checks a backend's section, or the parameters of its URL, against what its package declares.
 *
 * @param place the section's path, or empty for a URL
 * @throws ConfigError
 */
export function checkSection(
  section: Readonly<Record<string, unknown>>,
  module: Pick<BackendModule, 'options'>,
  origin: Origin,
  place: string,
): Readonly<Record<string, unknown>> {
  const shape: Record<string, z.ZodType> = {
    url: values.url().optional(),
    prefix: values.prefix().optional(),
  };
  for (const [name, type] of Object.entries(module.options ?? {})) shape[name] = OPTION[type]().optional();
  const result = z.strictObject(shape).safeParse(section);
  if (!result.success) throw complainOf(result.error, origin, place, () => Object.keys(shape));
  return defined(result.data);
}

/** Zod's own words for unknown keys, ours for the rest. */
function withKeys(message: string): (issue: { code?: string }) => string | undefined {
  return (issue) => (issue.code === 'unrecognized_keys' ? undefined : message);
}

/** Without the keys that are undefined. */
function defined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(kept) as { [K in keyof T]: Exclude<T[K], undefined> };
}
