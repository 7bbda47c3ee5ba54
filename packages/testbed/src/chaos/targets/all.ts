import type { ChaosTarget } from '../target.js';
import { memory } from './memory.js';
import { sqlite } from './sqlite.js';

/** Every backend that can be put under chaos. */
export const TARGETS: readonly ChaosTarget[] = [memory, sqlite];
