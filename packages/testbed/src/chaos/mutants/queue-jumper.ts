import { type Mutate, passOn } from './mutant.js';

/** Waiters never join the queue: whoever asks at the right moment is served. */
export const mutate: Mutate = (backend) =>
  passOn(backend, {
    attempt: (claim) => backend.attempt({ ...claim, queue: false }),
    awaitTurn: (_claim, _contended, signal) =>
      new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', done);
          resolve();
        };
        const timer = setTimeout(done, Math.random() * 40);
        signal.addEventListener('abort', done);
      }),
  });
