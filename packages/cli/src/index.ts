export { EXIT } from './exit.js';
export { main } from './program.js';
