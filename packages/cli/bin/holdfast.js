#!/usr/bin/env node
// In the repository from the start: package managers link it before anything is built.
import '../dist/main.js';
