export { generate, render } from './generate.js';
