import type { CommandGroup } from './group.js';

/**
 * Ctrl-Z at a terminal stops this process, not the command, which is in a session of its own. A command that went on
 * alone would outlive the lock that nobody renews: so both stop, and go on together.
 *
 * @returns the function that gives the signals back
 */
export function followSuspension(group: CommandGroup): () => void {
  const stop = (): void => {
    group.signal('SIGSTOP');
    process.kill(process.pid, 'SIGSTOP');
  };
  const goOn = (): void => group.signal('SIGCONT');
  process.on('SIGTSTP', stop);
  process.on('SIGCONT', goOn);
  return () => {
    process.off('SIGTSTP', stop);
    process.off('SIGCONT', goOn);
  };
}
