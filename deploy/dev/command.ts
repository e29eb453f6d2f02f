import { spawn } from 'node:child_process';
import { UserError, errorCode } from './program.ts';

export interface CommandResult {
  /** Exit code; 128 + the signal's number is not imitated: a signal gives -1. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface CommandOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Sent to standard input, which is then closed. */
  input?: string;
  signal?: AbortSignal;
  timeoutMs?: number;
  /** Called with each piece of standard error as it comes, for progress. */
  onStderr?: (text: string) => void;
  /** Called with each piece of standard output as it comes. */
  onStdout?: (text: string) => void;
}

/**
 * Runs a command to its end and returns what it printed, whatever its exit code.
 * Throws UserError when the program does not exist, the signal's reason when aborted.
 */
export function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs }),
    });
    const abort = (): void => void child.kill('SIGTERM');
    options.signal?.addEventListener('abort', abort, { once: true });
    if (options.signal?.aborted === true) abort();
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      options.onStdout?.(text);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      options.onStderr?.(text);
    });
    child.on('error', (error) => {
      options.signal?.removeEventListener('abort', abort);
      const missing = errorCode(error) === 'ENOENT';
      reject(missing ? new UserError(`${command} is not installed (not found on PATH).`) : error);
    });
    child.on('close', (code) => {
      options.signal?.removeEventListener('abort', abort);
      if (options.signal?.aborted === true) reject(abortReason(options.signal));
      else resolve({ code: code ?? -1, stdout, stderr });
    });
    // A command that ends before reading its input is judged by its exit code, not by EPIPE.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
  });
}

/** The reason of an aborted signal as an Error. */
export function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new UserError('Interrupted.');
}

/** The last lines of a text that are not empty, for messages about a failed command. */
export function lastLines(text: string, count: number): string {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-count)
    .join('\n');
}
