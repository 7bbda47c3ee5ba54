import type { Guarantee } from '../guarantee.js';
import { adoption } from './adoption.js';
import { capabilities } from './capabilities.js';
import { close } from './close.js';
import { durations } from './durations.js';
import { errors } from './errors.js';
import { events } from './events.js';
import { exclusion } from './exclusion.js';
import { fairness } from './fairness.js';
import { fencing } from './fencing.js';
import { force } from './force.js';
import { inspect } from './inspect.js';
import { limits } from './limits.js';
import { loss } from './loss.js';
import { names } from './names.js';
import { outage } from './outage.js';
import { reentry } from './reentry.js';
import { release } from './release.js';
import { renewal } from './renewal.js';
import { run } from './run.js';
import { seam } from './seam.js';
import { validity } from './validity.js';
import { waiting } from './waiting.js';

/** Every guarantee of the specification, in the order in which a newcomer should meet them. */
export const GUARANTEES: readonly Guarantee[] = [
  capabilities,
  seam,
  exclusion,
  validity,
  loss,
  renewal,
  fencing,
  fairness,
  waiting,
  release,
  run,
  reentry,
  limits,
  force,
  adoption,
  inspect,
  names,
  durations,
  errors,
  events,
  close,
  outage,
];
