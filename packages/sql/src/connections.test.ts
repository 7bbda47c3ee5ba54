import { BackendError } from '@holdfast/core';
import { expect, it } from 'vitest';
import { type Call, Connections } from './connections.js';
import { TestClock } from './test-clock.js';

const TIMEOUT = 1000;

/** A pool whose connections come when told, and what became of them. */
function scene(most = 10) {
  const clock = new TestClock();
  const asked: ((connection: object) => void)[] = [];
  const log: string[] = [];
  const connections = new Connections<object>({
    pool: {
      most,
      acquire: () => new Promise((resolve) => asked.push(resolve)),
      release: (_, broken) => log.push(broken ? 'closed' : 'given back'),
      close: async () => {},
    },
    classify: (error) => ({
      kind: 'failed',
      error: new BackendError('BACKEND_UNAVAILABLE', String(error)),
      broken: false,
    }),
    clock,
    timeout: TIMEOUT,
    label: 'the server',
    unprepared: () => {},
  });
  const arrive = async (): Promise<void> => {
    await clock.advance(0);
    asked.shift()?.({});
    await clock.advance(0);
  };
  /** Starts a statement that is answered after so many ms. */
  const ask = (takes: number, call?: Call): void => {
    const statement = () =>
      new Promise<string>((resolve) => {
        log.push('sent');
        clock.setTimer(takes, () => resolve('answer'));
      });
    connections.use(statement, call).then(
      (answer) => log.push(answer),
      (error: Error) => log.push(error.message),
    );
  };
  return { clock, connections, arrive, ask, log };
}

it('a statement has its time, also where it is the last of a call that is nearly over', async () => {
  const { clock, arrive, ask, connections, log } = scene();
  const call = connections.begin();
  await clock.advance(TIMEOUT * 0.9);
  ask(200, call);
  await arrive();
  await clock.advance(TIMEOUT * 0.2);
  expect(log).toEqual(['sent', 'given back', 'answer']);
});

it('a connection that comes when there is no time for a statement goes back, and nothing is sent', async () => {
  const { clock, arrive, ask, log } = scene();
  ask(100);
  await clock.advance(TIMEOUT * 0.8);
  expect(log).toEqual(['the server gave no connection (is its pool used up?) within 1000 ms']);
  await arrive();
  expect(log.slice(1)).toEqual(['given back']);
});

it('a connection whose statement is not answered is closed', async () => {
  const { clock, arrive, ask, log } = scene();
  ask(5000);
  await arrive();
  await clock.advance(TIMEOUT + 1);
  expect(log).toEqual(['sent', 'closed', 'the server did not answer within 1000 ms']);
});

it('a statement that was sent late has half of the time of a call for its answer', async () => {
  const { clock, arrive, ask, log } = scene();
  ask(TIMEOUT * 0.45);
  await clock.advance(TIMEOUT * 0.7);
  await arrive();
  await clock.advance(TIMEOUT * 0.5);
  expect(log).toEqual(['sent', 'given back', 'answer']);
});

it('calls that have begun go first: of a crowd, some are through while others have not begun', async () => {
  const { clock, arrive, connections, log } = scene(1);
  const statement = (what: string) => (): Promise<void> =>
    new Promise((resolve) => {
      log.push(what);
      clock.setTimer(10, resolve);
    });
  const two = async (who: string): Promise<void> => {
    const call = connections.begin();
    await connections.use(statement(`${who}1`), call);
    await connections.use(statement(`${who}2`), call);
  };
  const all = ['a', 'b', 'c', 'd'].map(two);
  for (let i = 0; i < 8; i++) {
    await arrive();
    await clock.advance(10);
  }
  await Promise.all(all);
  const sent = log.filter((entry) => entry !== 'given back');
  expect(sent.slice(0, 4)).toContain('a2');
  expect(sent.slice(0, 6)).toContain('b2');
});
