import { describe, expect, it } from 'vitest';
import { Call } from './call.js';

describe('a call', () => {
  it('that is taken back ends what is under way', () => {
    const log: string[] = [];
    const call = new Call();
    call.started({ cancel: () => log.push('first') });
    call.cancel();
    expect(log).toEqual(['first']);
  });

  it('that was taken back while it waited to be sent ends as soon as it is', () => {
    const log: string[] = [];
    const call = new Call();
    call.started({ cancel: () => log.push('token') });
    call.cancel();
    call.started({ cancel: () => log.push('request') });
    expect(log).toEqual(['token', 'request']);
  });
});
