import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFaketime } from '../servers/install.js';
import { supervisor } from '../supervisor/supervisor.js';

/**
 * A wall clock that can be set while its processes run (libfaketime, Linux). Time goes on normally from the offset;
 * the monotonic clock is left alone.
 */
export interface ServerClock extends Disposable {
  /** Sets the clock to this many milliseconds ahead of the real one; negative is behind. */
  set(offset: number): void;
  /** For a process to live by this clock. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Makes a clock for a server or a worker, `offset` milliseconds ahead of the real one.
 *
 * @throws Error when libfaketime is not here and cannot be installed
 */
export function fakeClock(offset = 0): ServerClock {
  const library = findFaketime();
  const folder = join(tmpdir(), `holdfast-clock-${randomBytes(6).toString('hex')}`);
  supervisor().tell({ type: 'own', path: folder });
  // Readable by the account that a server runs as.
  mkdirSync(folder, { mode: 0o755 });
  const file = join(folder, 'offset');
  const set = (milliseconds: number): void => {
    const seconds = milliseconds / 1000;
    writeFileSync(`${file}.next`, `${seconds < 0 ? '' : '+'}${seconds.toFixed(3)}\n`, { mode: 0o644 });
    // In one step: the processes may read it at any moment.
    renameSync(`${file}.next`, file);
  };
  set(offset);
  return {
    set,
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    [Symbol.dispose]() {
      rmSync(folder, { recursive: true, force: true });
      supervisor().tell({ type: 'disown', path: folder });
    },
  };
}
