/** What the command-line programs of this folder share: one-sentence failures, exit codes, Ctrl-C. */

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
 * Runs a program: its number is the exit code, a `UserError` ends it with its sentence and code 1, anything else with its stack.
 * The first SIGINT, SIGTERM or SIGHUP aborts the signal, so that the program can stop what it started; the second ends it at once.
 */
export function runProgram(main: (signal: AbortSignal) => Promise<number>): void {
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) process.exit(interrupted);
    controller.abort(new UserError('Interrupted.'));
  };
  // SIGHUP: the terminal was closed.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, onSignal);
  main(controller.signal).then(
    (code) => process.exit(code),
    (error: unknown) => {
      if (controller.signal.aborted) process.exit(interrupted);
      process.stderr.write(`${describeFailure(error)}\n`);
      process.exit(1);
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
