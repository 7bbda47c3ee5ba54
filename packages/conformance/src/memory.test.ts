import { MemoryStore, memoryBackend, systemClock } from '@holdfast/core';
import { describeConformance } from './index.js';

const store = new MemoryStore(systemClock);

describeConformance('memory', {
  create: ({ prefix }) => memoryBackend({ store, prefix }),
  child: { url: 'memory:' },
});
