import 'reflect-metadata';
import { createLocks, type Locks, memoryBackend } from '@holdfast/core';
import { type INestApplicationContext, Module, SetMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, expect, it } from 'vitest';
import { HoldfastModule, LOCKS } from './module.js';
import { WithLock } from './with-lock.js';

/** What compilers make of decorators above a method, the innermost last. */
function decorate(type: { readonly prototype: object }, key: string, ...decorators: MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, key) as PropertyDescriptor;
  for (const decorator of decorators.reverse()) decorator(type.prototype, key, descriptor);
  Object.defineProperty(type.prototype, key, descriptor);
}

const log: string[] = [];

class Orders {
  readonly place = 'here';

  async pay(order: string): Promise<string> {
    log.push(`${order} enters`);
    await new Promise(setImmediate);
    log.push(`${order} leaves`);
    return `${order} paid ${this.place}`;
  }

  async close(): Promise<void> {
    throw new Error('the till is stuck');
  }
}
decorate(
  Orders,
  'pay',
  SetMetadata('above', 1),
  WithLock((order: string) => `order:${order}`, { wait: '20s' }) as MethodDecorator,
  SetMetadata('below', 2),
);
decorate(Orders, 'close', WithLock('till', { wait: 0 }) as MethodDecorator);

class Settings {
  readonly backend = memoryBackend();
}
class SettingsModule {}
Module({ providers: [Settings], exports: [Settings] })(SettingsModule);

const running: INestApplicationContext[] = [];

async function start(
  holdfast = HoldfastModule.forRoot('memory:?prefix=nest'),
): Promise<INestApplicationContext> {
  class App {}
  Module({ imports: [holdfast], providers: [Orders] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  running.push(app);
  return app;
}

afterEach(async () => {
  log.length = 0;
  await Promise.all(running.splice(0).map((app) => app.close()));
});

it('runs a method under the lock that its arguments name, over all instances', async () => {
  const apps = await Promise.all([start(), start()]);
  const paid = await Promise.all(apps.map((app) => app.get(Orders).pay('42')));
  expect(paid).toEqual(['42 paid here', '42 paid here']);
  expect(log).toEqual(['42 enters', '42 leaves', '42 enters', '42 leaves']);
});

it('lets other names go on side by side', async () => {
  const orders = (await start()).get(Orders);
  await Promise.all([orders.pay('1'), orders.pay('2')]);
  expect(log.slice(0, 2).sort()).toEqual(['1 enters', '2 enters']);
});

it('rejects as run() does: with the method’s own error, or with the lock’s', async () => {
  const app = await start();
  await expect(app.get(Orders).close()).rejects.toThrow('the till is stuck');
  const hold = await app.get<Locks>(LOCKS).lock('till').acquire();
  await expect(app.get(Orders).close()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await hold.release();
});

it('keeps what other decorators say of the method', () => {
  expect(Reflect.getMetadata('above', Orders.prototype.pay)).toBe(1);
  expect(Reflect.getMetadata('below', Orders.prototype.pay)).toBe(2);
});

it('is for methods alone', () => {
  class Wrong {
    get pay(): number {
      return 1;
    }
  }
  expect(() => decorate(Wrong, 'pay', WithLock('x') as MethodDecorator)).toThrow('pay is none');
});

it('closes the locks with the application, which frees what is held', async () => {
  const [app, other] = [await start(), await start()];
  const locks = app.get<Locks>(LOCKS);
  await locks.lock('held').acquire();
  await app.close();
  await expect(locks.lock('held').acquire()).rejects.toMatchObject({ code: 'LOCKS_CLOSED' });
  const next = await other.get<Locks>(LOCKS).lock('held').acquire({ wait: '20s' });
  expect(next.isHeld()).toBe(true);
});

it('makes the locks with what other providers know', async () => {
  const app = await start(
    HoldfastModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: ({ backend }: Settings) => createLocks(backend, { defaults: { ttl: '7s' } }),
    }),
  );
  const hold = await app.get<Locks>(LOCKS).lock('anything').acquire();
  expect(hold.ttl).toBe(7000);
});

it('does not start where the configuration is wrong', async () => {
  await expect(start(HoldfastModule.forRoot('redsi://h'))).rejects.toMatchObject({ code: 'CONFIG' });
});
