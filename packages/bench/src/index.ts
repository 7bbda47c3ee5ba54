export { plot, type Theme } from './plot.js';
export { LAYERS } from './profile.js';
export {
  type BackendResults,
  type Figure,
  formatNumber,
  type Results,
  SCENARIOS,
  type Scenario,
} from './results.js';
export type { Backend } from './subject.js';
