/** What our command-line programs share: `--help`, one-sentence failures, exit codes, Ctrl-C. */
import type { Command } from 'commander';

/** A failure the person at the keyboard can do something about: its message is one sentence, shown without a stack. */
export class UserError extends Error {
  override readonly name = 'UserError';
}

/** Where progress goes, one line per call. */
export type Log = (line: string) => void;

/** Writes one line to standard output. */
export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

const interrupted = 130;

/**
 * Reads the command line, which ends the program on `--help` and, with one sentence and code 1, on what it does not know. Then runs
 * it: its number is the exit code, a `UserError` ends it with its sentence and code 1, anything else with its stack.
 * The first SIGINT, SIGTERM or SIGHUP aborts the signal, so that the program can stop what it started, and the second ends it at
 * once, with code 130. One that takes no signal has nothing to stop: the first one ends it.
 */
export function runProgram(command: Command, main: (signal: AbortSignal) => Promise<number>): void {
  command.parse();
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) {
      process.stderr.write('Interrupted again: nothing is waited for any more.\n');
      process.exit(interrupted);
    }
    controller.abort(new UserError('Interrupted.'));
  };
  // SIGHUP: the terminal was closed.
  if (main.length > 0) for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, onSignal); // prettier-ignore
  // Also when it throws before its first `await`.
  Promise.resolve(controller.signal)
    .then(main)
    .then(
      (code) => process.exit(code),
      (error: unknown) => {
        const { aborted } = controller.signal;
        // What breaks off because of the interruption has nothing to tell, but for the program's own last word.
        const text =
          aborted && !(error instanceof UserError) ? 'Interrupted.' : describeFailure(error);
        process.stderr.write(`${text}\n`);
        process.exit(aborted ? interrupted : 1);
      },
    );
}

function describeFailure(error: unknown): string {
  if (error instanceof UserError) return error.message;
  if (error instanceof Error) return error.stack ?? error.message;
  return String(error);
}

/** The message of anything thrown, without a stack. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system error code (`ENOENT`, `EADDRINUSE`, …) of anything thrown, also of its cause; undefined when there is none. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  return errorCode(error.cause);
}
