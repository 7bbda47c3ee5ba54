/**
 * What the examples share: several processes of one script, as if each ran on a host of its own.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Starts processes of a script, gives them to `story`, and ends them with it.
 *
 * @param {URL} script calls {@link serve}
 * @param {number} count
 * @param {(ask: (question: unknown) => Promise<any[]>, folder: string) => Promise<void>} story `ask` puts a question to
 *   every process at once; `folder` is for the files that they share, and is each process's first argument
 */
export async function withInstances(script, count, story) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-example-'));
  const children = Array.from({ length: count }, (_, number) =>
    fork(fileURLToPath(script), [folder, String(number)]),
  );
  try {
    await Promise.all(children.map(answer));
    const ask = (question) =>
      Promise.all(
        children.map((child) => {
          const answered = answer(child);
          child.send({ question });
          return answered;
        }),
      );
    await story(ask, folder);
  } finally {
    await Promise.all(children.map(dismiss));
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Answers what the parent asks, until it has no more questions.
 *
 * @param {(question: any) => unknown} handle
 * @param {() => unknown} close
 */
export function serve(handle, close) {
  process.on('message', async ({ question }) => {
    try {
      process.send?.({ answer: await handle(question) });
    } catch (error) {
      process.send?.({ error: String(error) });
    }
  });
  process.once('disconnect', close);
  process.send?.({ answer: 'ready' });
}

/** Ends the example with what it claims, or with what was seen instead. */
export function claim(what, holds) {
  console.log(`${holds ? '✓' : '✗'} ${what}`);
  if (!holds) process.exitCode = 1;
}

/** Work that takes a while. */
export const takes = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The next answer of a process. */
function answer(child) {
  return new Promise((resolve, reject) => {
    const onMessage = ({ answer: value, error }) => settle(error, value);
    const onExit = (code) => settle(`a process ended with exit code ${code}`);
    const settle = (error, value) => {
      child.off('message', onMessage).off('exit', onExit);
      if (error === undefined) resolve(value);
      else reject(new Error(error));
    };
    child.on('message', onMessage).on('exit', onExit);
  });
}

/** Lets a process end by itself, as it does when it has closed its locks. */
async function dismiss(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  if (child.connected) child.disconnect();
  await gone;
}
