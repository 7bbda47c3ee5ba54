import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from '@holdfast/core';
import { serveWorker } from '@holdfast/testbed';

// A process of its own that opens locks and does with them what the test says.
let locks;
let hold;

serveWorker(
  {
    /** Whoever may do everything may write what is read-only, too. */
    beOrdinary() {
      if (process.getuid() !== 0) return;
      process.setgid(65534);
      process.setuid(65534);
    },
    async open({ url }) {
      locks = await connect(url);
    },
    async acquire({ name, ...options }) {
      hold = await locks.lock(name).acquire(options);
      return { owner: hold.owner, token: hold.fencingToken };
    },
    async tryAcquire({ name, ...options }) {
      hold = await locks.lock(name).tryAcquire(options);
      return hold !== null;
    },
    isHeld: () => hold.isHeld(),
    release: () => hold.release(),
    /** Adds to a number in a file, under the lock and in two steps; answers the longest stall of the event loop. */
    async count({ name, file, times }) {
      let last = performance.now();
      let stall = 0;
      const pulse = setInterval(() => {
        stall = Math.max(stall, performance.now() - last - 10);
        last = performance.now();
      }, 10);
      for (let i = 0; i < times; i++) {
        await locks.lock(name).run(async () => {
          const before = Number(readFileSync(file, 'utf8'));
          await new Promise((resolve) => setImmediate(resolve));
          writeFileSync(file, String(before + 1));
        });
      }
      clearInterval(pulse);
      return stall;
    },
    close: () => locks.close(),
  },
  { onStop: () => locks?.close() },
);
