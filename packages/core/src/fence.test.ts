import { describe, expect, it } from 'vitest';
import { createFenceGuard, type FenceStore } from './fence.js';

function memory(): FenceStore & { newest: bigint | undefined } {
  return {
    resource: 'account',
    newest: undefined,
    read() {
      return this.newest;
    },
    write(token, previous) {
      if (this.newest !== previous) return false;
      this.newest = token;
      return true;
    },
  };
}

describe('the fence guard', () => {
  it('passes tokens that are as new as any seen and refuses older ones', async () => {
    const guard = createFenceGuard(memory());
    await guard.check(5n);
    await guard.check(5n);
    await guard.check(7n);
    await expect(guard.check(6n)).rejects.toMatchObject({ code: 'STALE_TOKEN', token: 6n, newest: 7n });
  });

  it('reads again when another process was faster, and then refuses', async () => {
    const store = memory();
    const guard = createFenceGuard({
      resource: 'account',
      read: () => store.read(),
      write(token, previous) {
        store.newest ??= 9n;
        return store.write(token, previous);
      },
    });
    await expect(guard.check(8n)).rejects.toMatchObject({ code: 'STALE_TOKEN', newest: 9n });
  });

  it('runs guarded work one piece at a time, a failing one included', async () => {
    const guard = createFenceGuard(memory());
    const log: string[] = [];
    const first = guard.run(1n, async () => {
      log.push('first');
      await new Promise((resolve) => setImmediate(resolve));
      log.push('first ends');
      throw new Error('E');
    });
    const second = guard.run(2n, () => log.push('second'));
    await expect(first).rejects.toThrow('E');
    await second;
    await expect(guard.run(1n, () => log.push('stale'))).rejects.toMatchObject({ code: 'STALE_TOKEN' });
    expect(log).toEqual(['first', 'first ends', 'second']);
  });
});
