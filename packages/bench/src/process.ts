import { type ChildProcess, fork } from 'node:child_process';
import type { Finding, Task } from './scenarios.js';
import type { Subject } from './subject.js';

type Answer = Finding | { readonly kind: 'ready' } | { readonly kind: 'failed'; readonly reason: string };

/** ms */
const CLOSING = 5000;

/** A subject in a process of its own. */
export class SubjectProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(subject: Subject, url: string): Promise<SubjectProcess> {
    const child = fork(new URL('./worker.js', import.meta.url), [subject.backend, subject.name, url], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const started = new SubjectProcess(child);
    await started.#answer();
    return started;
  }

  /** Runs a task and gives what it found. */
  async perform(task: Task): Promise<Finding> {
    const answer = this.#answer();
    this.#child.send(task);
    const finding = await answer;
    if (finding.kind === 'ready') throw new Error('the process started twice');
    return finding;
  }

  /** kill −9, as a dead holder. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async close(): Promise<void> {
    if (this.#child.killed || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    this.#child.send('close');
    // A client that goes on trying for ever keeps its process alive.
    const tooLong = setTimeout(() => this.kill(), CLOSING);
    await gone;
    clearTimeout(tooLong);
  }

  #answer(): Promise<Exclude<Answer, { kind: 'failed' }>> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null): void => reject(new Error(`the process ended (${code})`));
      this.#child.once('exit', onExit);
      this.#child.once('message', (answer: Answer) => {
        this.#child.off('exit', onExit);
        if (answer.kind === 'failed') reject(new Error(answer.reason));
        else resolve(answer);
      });
    });
  }
}
