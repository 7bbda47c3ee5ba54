import { type Answer, BLOCK, type Call } from './messages.js';

export interface ServeOptions {
  /** Runs when the test closes the channel, before the process exits. */
  readonly onStop?: () => Promise<void> | void;
}

/** Functions of one argument that a test calls by name; what they resolve with is the answer. */
export type Commands = Readonly<Record<string, (argument: never) => unknown>>;

/** The worker's side: answers calls by name until the test closes the channel. `emit` sends an event to the test. */
export function serveWorker(
  commands: Commands,
  options: ServeOptions = {},
): { emit(name: string, value?: unknown): void } {
  process.on('message', (call: Call) => void answer(call, commands));
  process.once('disconnect', () => void stop(options));
  send({ type: 'ready' });
  return { emit: (name, value) => send({ type: 'event', name, value }) };
}

async function answer({ id, command, argument }: Call, commands: Commands): Promise<void> {
  if (command === BLOCK) {
    // Only when the answer is on its way: afterwards nothing leaves this process.
    return send({ type: 'result', id, value: undefined }, () => block(Number(argument)));
  }
  try {
    const run = commands[command] as ((argument: unknown) => unknown) | undefined;
    if (run === undefined) throw new Error(`This worker has no command ${command}.`);
    send({ type: 'result', id, value: await run(argument) });
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    const { name, message, stack } = error;
    send({ type: 'error', id, error: { name, message, stack, code: (error as { code?: unknown }).code } });
  }
}

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

async function stop({ onStop }: ServeOptions): Promise<void> {
  await onStop?.();
  process.exit(0);
}

function send(message: Answer, sent: () => void = () => undefined): void {
  // The test may have gone: then there is nobody to tell.
  process.send?.(message, undefined, undefined, sent);
}
