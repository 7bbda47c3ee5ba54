import type { BackendModule, BackendOptions, OptionType } from '../backend.js';
import { MAX_DURATION } from '../duration.js';
import type { LocksOptions } from '../locks.js';
import { BACKEND_NAMES, isSection } from './backends.js';
import { complaint, nearest, suggestion } from './complaint.js';
import type { Origin } from './config.js';
import { check, fields, withoutUndefined } from './fields.js';
import * as values from './values.js';

/** A config whose every key is known and whose section is still the backend's to check. */
export interface CheckedConfig {
  readonly backend: string;
  readonly section: object;
  readonly options: LocksOptions;
}

const DEFAULTS = fields({
  ttl: values.holdTime,
  wait: values.duration({ zero: true, infinite: true }),
  renew: values.flag,
  maxHold: values.duration({ infinite: true, max: MAX_DURATION }),
  minHold: values.holdTime,
  reentrant: values.flag,
  metadata: values.text,
});

const TOP = {
  $schema: values.anything,
  backend: values.text,
  defaults: DEFAULTS,
  fenceOffset: values.fenceOffset,
  unavailableAfter: values.duration({}),
  commandTimeout: values.duration({}),
};

/** An npm package's name: nothing that could be a path. */
const PACKAGE = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

/**
 * Checks everything but the backend's section, whose keys only the backend's package knows. The sections of other
 * backends may stand beside it, so that a change of `backend` is all that a change of backend takes.
 *
 * @throws ConfigError
 */
export function checkConfig(value: unknown, origin: Origin): CheckedConfig {
  const name = backendIn(value, origin);
  const others = Object.keys(value as object).filter(isSection);
  const sections = Object.fromEntries([...BACKEND_NAMES, name, ...others].map((key) => [key, values.object]));
  const checked = check(fields({ ...sections, ...TOP }), value, origin, '');
  const { defaults, fenceOffset, unavailableAfter, commandTimeout } = checked;
  return {
    backend: name,
    section: (checked as Readonly<Record<string, object>>)[name] ?? {},
    options: withoutUndefined({ defaults, fenceOffset, unavailableAfter, commandTimeout }),
  };
}

function backendIn(value: unknown, origin: Origin): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw complaint(origin, '', 'must hold an object with the key "backend"');
  }
  const name = 'backend' in value ? value.backend : undefined;
  if (name === undefined) {
    const slip = nearest('backend', Object.keys(value));
    const meant = slip === undefined ? '' : ` (did you write it as ${JSON.stringify(slip)}?)`;
    const allowed = `it names one of ${BACKEND_NAMES.join(', ')}, or a package`;
    throw complaint(origin, 'backend', `is missing${meant}; ${allowed}`);
  }
  if (typeof name === 'string' && PACKAGE.test(name) && !Object.hasOwn(TOP, name)) return name;
  const hint = typeof name === 'string' ? suggestion(name, BACKEND_NAMES) : '';
  throw complaint(origin, 'backend', `must be one of ${BACKEND_NAMES.join(', ')}, or a package${hint}`);
}

const OPTION: Readonly<Record<OptionType, values.Value>> = {
  string: values.text,
  integer: values.integer,
  boolean: values.flag,
  duration: values.duration({ zero: true }),
  object: values.object,
};

/**
 * Checks a backend's section, or the parameters of its URL, against what its package declares.
 *
 * @param place the section's path, or empty for a URL
 * @throws ConfigError
 */
export function checkSection(
  section: object,
  module: Pick<BackendModule, 'options'>,
  origin: Origin,
  place: string,
): BackendOptions {
  const options = Object.entries(module.options ?? {}).map(([name, type]) => [name, OPTION[type]] as const);
  const schema = fields({ ...Object.fromEntries(options), url: values.url, prefix: values.prefix });
  return check(schema, section, origin, place);
}
