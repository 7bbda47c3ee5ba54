/** A process that runs one subject: `worker.js BACKEND SUBJECT URL`, told what to do by its parent. */
import { type Finding, perform, type Task } from './scenarios.js';
import type { Backend, SubjectClient } from './subject.js';
import { findSubject } from './subjects/index.js';

const [backend, name, url] = process.argv.slice(2);
const client: SubjectClient = await findSubject(backend as Backend, name ?? '').open(url ?? '');

process.on('message', (task: Task | 'close') => {
  act(task).catch((error: unknown) => {
    process.send?.({
      kind: 'failed',
      reason: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
  });
});
process.on('disconnect', () => process.exit(0));
process.send?.({ kind: 'ready' });

async function act(task: Task | 'close'): Promise<void> {
  if (task === 'close') {
    await client.close();
    process.disconnect();
    return;
  }
  const finding: Finding = await perform(client, task);
  process.send?.(finding);
}
