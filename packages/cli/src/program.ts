import { readFileSync } from 'node:fs';
import { type Duration, type Locks, parseDuration } from '@holdfast/core';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { type BenchFlags, bench } from './commands/bench.js';
import { type DoctorFlags, doctor } from './commands/doctor.js';
import { list } from './commands/list.js';
import { checkRelease, type ReleaseFlags, release } from './commands/release.js';
import { show } from './commands/show.js';
import { type WatchFlags, watch } from './commands/watch.js';
import { type ConnectionFlags, openLocks } from './connection.js';
import { type DemoFlags, demo } from './demo/demo.js';
import { codeOfError, EXIT, messageOf, UsageError } from './exit.js';
import { type Output, standardOutput } from './output.js';
import { runUnderLock } from './run/run.js';
import { printable, quoted, withoutPassword } from './text.js';

/** Runs the program; resolves to its exit code. */
export async function main(args: readonly string[], output: Output = standardOutput()): Promise<number> {
  let code: number = EXIT.ok;
  const program = define(args, output, (result) => {
    code = result;
  });
  try {
    if (args[0] === 'run') checkRun(args);
    await program.parseAsync([...args], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    output.err(`holdfast: ${printable(messageOf(error))}`);
    return codeOfError(error);
  }
}

interface RunFlags extends ConnectionFlags {
  readonly wait?: string;
  readonly try?: boolean;
  readonly ttl?: string;
  readonly maxHold?: string;
  readonly minHold?: string;
  readonly killAfter: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

function define(args: readonly string[], output: Output, finish: (code: number) => void): Command {
  const program = new Command('holdfast')
    .description('Runs commands under a distributed lock, and shows who holds what.')
    .version(version())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => output.out(text.trimEnd()),
      writeErr: (text) => output.err(text.trimEnd()),
      // One form for all complaints; what was typed may hold escapes.
      outputError: (text, write) =>
        write(
          text
            .trimEnd()
            .split('\n')
            .map((line) => withoutPassword(printable(line)))
            .join('\n')
            .replace(/^error:/, 'holdfast:'),
        ),
    })
    .showHelpAfterError('(add --help for more)')
    .addHelpText('after', BACKEND_HELP);

  /** A command that works on open locks. */
  const withLocks = async (
    flags: ConnectionFlags,
    work: (locks: Locks) => Promise<unknown>,
  ): Promise<void> => {
    const locks = await openLocks(flags);
    try {
      await work(locks);
    } finally {
      await locks.close();
    }
  };

  backendOptions(program.command('run'))
    .summary('run a command under a lock, like flock(1) for many machines')
    .description('Waits its turn for the lock NAME, runs COMMAND, and gives the lock back when it has ended.')
    .usage('[options] NAME -- COMMAND…')
    .argument('<name>', 'the lock')
    .argument('<command...>', 'the command and its arguments, after --')
    .addOption(
      new Option(
        '-w, --wait <duration>',
        'give up after this long (exit 75); 0 is one attempt (default: no limit)',
      ).conflicts('try'),
    )
    .option('-n, --try', 'do not wait at all: exit 75 if the lock is busy')
    .option('--ttl <duration>', 'how long a dead holder can block others (default 30s)')
    .option('--max-hold <duration>', 'end the command after this long, as when the lock was lost')
    .option(
      '--min-hold <duration>',
      'keep the name taken until this long after the start, for jobs on many hosts',
    )
    .option('--kill-after <duration>', 'between TERM and KILL when the command has to end', '5s')
    .option('--json', 'tell what happens as JSON, one event a line, on standard error')
    .option('-v, --verbose', 'tell what happens on standard error')
    .addHelpText('after', RUN_HELP)
    .action(async (name: string, words: string[], flags: RunFlags) => {
      finish(await runUnderLock(runRequest(name, commandOf(args, name, words), flags), output));
    });

  backendOptions(program.command('list'))
    .summary('list the locks that are held or waited for')
    .description('Lists the locks that are held or waited for.')
    .option('--prefix <text>', 'only names that start so')
    .option('--json', 'one JSON object a line')
    .action((flags: ConnectionFlags & { prefix?: string; json?: boolean }) =>
      withLocks(flags, (locks) => list(locks, flags, output)),
    );

  backendOptions(program.command('show'))
    .summary('show who holds a lock and who waits')
    .description('Shows who holds the lock NAME, since when, for how long still, and who waits.')
    .argument('<name>', 'the lock')
    .option('--json', 'as a JSON object')
    .action((name: string, flags: ConnectionFlags & { json?: boolean }) =>
      withLocks(flags, (locks) => show(locks, name, flags, output)),
    );

  backendOptions(program.command('watch'))
    .summary('watch the locks in a live view')
    .description('Shows the locks that are held or waited for, again and again. Ctrl-C ends it.')
    .option('--prefix <text>', 'only names that start so')
    .option('--interval <duration>', 'between two looks', interval, 1000)
    .option('--count <number>', 'end after so many looks', whole(1, Number.MAX_SAFE_INTEGER))
    .option('--json', 'one JSON object for each look')
    .action((flags: ConnectionFlags & WatchFlags) =>
      withLocks(flags, (locks) => watch(locks, flags, output)),
    );

  backendOptions(program.command('release'))
    .summary('break a lock, whoever holds it')
    .description(
      'Breaks the lock NAME although somebody may hold it: with --token only that grant, otherwise after the name was typed again.',
    )
    .argument('<name>', 'the lock')
    .option('-f, --force', 'yes, although its holder may still work')
    .option('--token <number>', 'only if this is the holder’s fencing token, as `show` prints it')
    .option('--json', 'as a JSON object')
    .action(async (name: string, flags: ConnectionFlags & ReleaseFlags) => {
      checkRelease(flags);
      await withLocks(flags, async (locks) => finish(await release(locks, name, flags, output)));
    });

  backendOptions(program.command('doctor'))
    .summary('check the backend and its settings')
    .description(
      'Measures the way to the backend, takes and gives back a lock, and tells which settings are dangerous for locks. Exit code 1 when one is.',
    )
    .option('--strict', 'exit code 1 for warnings too')
    .option('--json', 'as a JSON object')
    .action((flags: ConnectionFlags & DoctorFlags) =>
      withLocks(flags, async (locks) => finish(await doctor(locks, flags, output))),
    );

  backendOptions(program.command('migrate'))
    .summary('make or update the tables of an SQL backend')
    .description(
      'Makes or updates the tables of an SQL backend, also where the configuration has `migrate` off.',
    )
    .action(async (flags: ConnectionFlags) => {
      const { migrate } = await import('./commands/migrate.js');
      await migrate(flags, output);
    });

  backendOptions(program.command('bench'))
    .summary('measure the backend quickly')
    .description('Measures the backend from this process, and draws how long things took.')
    .option('--duration <duration>', 'of each of the three measurements', interval, 2000)
    .option('--parallel <number>', 'how many at once', whole(1, 10_000), 20)
    .option('--svg <file>', 'draw it into a file too')
    .option('--json', 'the figures as a JSON object')
    .action((flags: ConnectionFlags & BenchFlags) =>
      withLocks(flags, (locks) => bench(locks, flags, output)),
    );

  backendOptions(program.command('demo'))
    .summary('see what a lock does, in half a minute')
    .description(
      'Several processes increment one counter: without a lock, under one, and with a holder that is killed.',
    )
    .option('--workers <number>', 'how many processes', whole(2, 16), 4)
    .option('--times <number>', 'how often each of them counts', whole(3, 1000), 15)
    .option('--json', 'the holds and counts as a JSON object')
    .action(async (flags: DemoFlags) => finish(await demo(flags, output)));

  return program;
}

/** Without `--` an option of the command would be taken for one of ours: `sh -c` for a config file. */
function checkRun(args: readonly string[]): void {
  if (args.includes('--') || args.length === 1 || args.some((arg) => HELP.includes(arg))) return;
  throw new UsageError('the command stands after --: holdfast run NAME -- COMMAND… (add --help for more)');
}

/**
 * The command is all that stands after the first `--`, and the name alone stands before it: a word more or less would be
 * taken for a part of the other. A name that begins with a dash needs a `--` of its own: `run -- -x -- true`.
 *
 * @param words all words but the name that are no options, as the parser found them
 */
function commandOf(args: readonly string[], name: string, words: readonly string[]): readonly string[] {
  const after = args.length - 1 - args.indexOf('--');
  const before = 1 + words.length - after;
  if (before === 1) return words;
  if (before > 1) {
    const [first = ''] = words;
    throw new UsageError(
      `the command follows --, and ${quoted(first)} stands before it: holdfast run NAME -- COMMAND…`,
    );
  }
  if (name.startsWith('-') && words[0] === '--') return words.slice(1);
  throw new UsageError('the name stands before --: holdfast run NAME -- COMMAND…');
}

const HELP: readonly string[] = ['-h', '--help'];

/** Reads a whole number within limits. */
function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`a whole number from ${least} to ${most} is allowed`);
  };
}

/** Reads a duration for commander's own complaint. */
function interval(text: string): number {
  try {
    return duration(text, 'duration');
  } catch {
    throw new InvalidArgumentError('a duration with its unit is allowed, such as 500ms or 2s');
  }
}

function backendOptions(command: Command): Command {
  return command
    .option('-u, --url <url>', 'the backend, such as redis://127.0.0.1:6379 (default: see `holdfast --help`)')
    .option('-c, --config <file>', 'a config file to use instead of the nearest holdfast.config.*');
}

function runRequest(
  name: string,
  command: readonly string[],
  flags: RunFlags,
): Parameters<typeof runUnderLock>[0] {
  if (process.platform === 'win32') {
    throw new UsageError('run needs process groups, which Windows does not have; use the library there');
  }
  const [program, ...args] = command;
  if (program === undefined) throw new UsageError('the command is missing: holdfast run NAME -- COMMAND…');
  const { url, config, wait, ttl, maxHold, minHold } = flags;
  return {
    ...(url === undefined ? {} : { url }),
    ...(config === undefined ? {} : { config }),
    name,
    command: [program, ...args],
    once: flags.try === true,
    options: {
      ...(wait === undefined ? {} : { wait: duration(wait, '--wait', true) }),
      ...(ttl === undefined ? {} : { ttl: duration(ttl, '--ttl') }),
      ...(maxHold === undefined ? {} : { maxHold: duration(maxHold, '--max-hold') }),
      ...(minHold === undefined ? {} : { minHold: duration(minHold, '--min-hold') }),
    },
    killAfter: duration(flags.killAfter, '--kill-after', true),
    style: flags.json === true ? 'json' : flags.verbose === true ? 'verbose' : 'quiet',
  };
}

/** A duration with its unit: a bare number could mean seconds to one and milliseconds to another. */
function duration(text: string, flag: string, zero = false): number {
  try {
    return parseDuration(text === '0' ? 0 : (text as Duration), flag, { zero });
  } catch {
    const least = zero ? 'or 0' : 'above zero';
    const allowed = `a duration with its unit, such as 500ms, 20s, 5m, 1h, 1d, ${least}`;
    throw new UsageError(`${flag} is ${JSON.stringify(text)}; allowed: ${allowed}`);
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return (manifest as { readonly version: string }).version;
}

const BACKEND_HELP = `
The backend is chosen by --url, else --config, else HOLDFAST_URL, else HOLDFAST_CONFIG, else the nearest
holdfast.config.{ts,mts,js,mjs,json,yaml,yml}, else a SQLite file for this user on this machine.

Examples:
  holdfast run nightly-report -- ./report.sh
  holdfast run --try --ttl 20s sync -- rsync -a src/ host:dst/
  holdfast list --url redis://127.0.0.1:6379
  holdfast show nightly-report`;

const RUN_HELP = `
COMMAND gets HOLDFAST_LOCK, HOLDFAST_FENCING_TOKEN and HOLDFAST_OWNER in its environment, and standard input. While
it waits for the lock, holdfast shows its place in the queue and the holder, if standard error is a terminal.
TERM, INT, HUP and QUIT are passed on to it and everything that it started, USR1 and USR2 to the command alone; the
lock is given back when all of them have gone. When the lock is lost they get TERM, and KILL after --kill-after. If holdfast itself is killed with
SIGKILL, a small guard process does the same to them before the lock's ttl ends and others can get in.

Exit code: the command's own; 128 + n if signal n ended it; 127 if it was not found, 126 if it could not be started;
75 if the lock was busy; 76 if it was lost; 69 if the backend was unavailable; 64 for wrong usage; 78 for wrong
configuration.

Durations carry their unit: 500ms, 20s, 5m, 1h, 1d.

Examples:
  holdfast run nightly-report -- ./report.sh
  holdfast run --wait 10s deploy -- sh -c 'git pull && make install'
  0 3 * * *  holdfast run --try --min-hold 1m backup -- /usr/local/bin/backup     (in every host's crontab)`;
