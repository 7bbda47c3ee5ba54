export type { ChildSpec, ConformanceOptions, ServerFaults } from './options.js';
export { describeConformance } from './suite.js';
