import { describe, expect, it } from 'vitest';
import { matrixOf } from './matrix.js';
import { TARGETS } from './targets/all.js';

describe.each(TARGETS)('$id', (target) => {
  it.each(matrixOf(target))(
    '$kind: it has such a fault, or a reason why it has none',
    ({ faults, reason }) => {
      expect(faults.length > 0).toBe(reason === undefined);
    },
  );
});
