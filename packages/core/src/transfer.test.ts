import { describe, expect, it } from 'vitest';
import { createLocks } from './locks.js';
import { memoryBackend } from './memory/backend.js';
import { outcome, world } from './testing/world.js';

describe('serialize and adopt', () => {
  it('hands the hold over: same token, a new owner, the old handle is out of it', async () => {
    const { clock, flaky, a, b } = await world();
    const hold = await a.lock('k').acquire({ ttl: 3000, metadata: 'm' });
    const text = hold.serialize();
    expect(hold.isHeld()).toBe(false);
    expect(hold.signal.aborted).toBe(false);
    await clock.advance(1000);
    const renewals = flaky.count('renew');
    const adopted = await b.adopt(text);
    expect(adopted.fencingToken).toBe(hold.fencingToken);
    expect(adopted.owner).not.toBe(hold.owner);
    await clock.advance(20_000);
    expect(adopted.isHeld()).toBe(true);
    expect(flaky.count('renew')).toBe(renewals);
    expect(await hold.release()).toBe(false);
    expect(await adopted.release()).toBe(true);
  });

  it('lets one of two adopters have it', async () => {
    const { a, b } = await world();
    const text = (await a.lock('k').acquire()).serialize();
    const outcomes = await Promise.all([outcome(a.adopt(text)), outcome(b.adopt(text))]);
    expect(outcomes.filter((one) => 'code' in one)).toMatchObject([{ code: 'LOCK_LOST' }]);
  });

  it('is one adoption when the answer is lost', async () => {
    const { clock, flaky, a, b } = await world();
    const text = (await b.lock('k').acquire()).serialize();
    flaky.next('adopt', 'lose-answer');
    const adopting = a.adopt(text);
    await clock.advance(500);
    expect((await adopting).isHeld()).toBe(true);
  });

  it('survives close', async () => {
    const { a, b } = await world();
    const text = (await a.lock('k').acquire()).serialize();
    await a.close();
    expect((await b.adopt(text)).isHeld()).toBe(true);
  });

  it('in the middle of close() leaves nothing', async () => {
    const { clock, a, b } = await world();
    const text = (await b.lock('k').acquire({ ttl: 1000 })).serialize();
    const adopting = outcome(a.adopt(text));
    const closing = a.close();
    await clock.advance(10);
    await closing;
    expect(await adopting).toMatchObject({ code: 'LOCKS_CLOSED' });
    expect((await b.inspect('k')).held).toBe(false);
  });

  it('keeps maxHold', async () => {
    const { clock, a, b } = await world();
    const text = (await a.lock('k').acquire({ ttl: 3000, maxHold: 5000 })).serialize();
    await clock.advance(2000);
    const adopted = await b.adopt(text);
    await clock.advance(3100);
    expect(adopted.signal.reason).toMatchObject({ reason: 'max-hold' });
  });

  it.each([['nonsense'], [''], ['e30'], [42], [null]])('refuses %j', async (text) => {
    const { a } = await world();
    await expect(a.adopt(text as string)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('refuses a token that does not fit 64 bits', async () => {
    const { a } = await world();
    const parcel = JSON.parse(Buffer.from((await a.lock('k').acquire()).serialize(), 'base64url').toString());
    const text = Buffer.from(JSON.stringify({ ...parcel, token: '9'.repeat(19) })).toString('base64url');
    await expect(a.adopt(text)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('refuses a hold of another prefix', async () => {
    const { a } = await world();
    const other = await createLocks(memoryBackend({ prefix: 'other' }));
    const text = (await other.lock('k').acquire()).serialize();
    await expect(a.adopt(text)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});
