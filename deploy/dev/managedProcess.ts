import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { abortReason, lastLines } from './command.ts';
import { describeProcess, removeRecord, signalGroup, writeRecord } from './processRecord.ts';
import { UserError } from './program.ts';

export interface ProcessSpec {
  /** Also the name of its log file. */
  name: string;
  command: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  /** Asked every 100 ms after a start, until it answers true. */
  isReady(): Promise<boolean>;
  readyWithinMs: number;
  /** From SIGTERM to SIGKILL. */
  stopGraceMs: number;
}

/** A child process that can be stopped, killed and started again under the same name, flags and log. */
export interface ManagedProcess {
  readonly name: string;
  readonly logFile: string;
  /** Undefined while it does not run. */
  pid(): number | undefined;
  /** Starts it and waits until it is ready. Throws UserError with the last lines of its log when it ends or stays unready. */
  start(signal: AbortSignal): Promise<void>;
  /** SIGTERM, SIGKILL after the grace; resolves when it has ended. */
  stop(): Promise<void>;
  /** SIGKILL, as a crash would; resolves when it has ended. */
  kill(): Promise<void>;
}

/** Where the processes of one stack write. */
export interface ProcessFolders {
  logs: string;
  pids: string;
}

interface Running {
  child: ChildProcess;
  exited: Promise<void>;
  /** Set before we end it ourselves: any other end is a failure. */
  expected: boolean;
}

const readyPollMs = 100;
const shownLines = 15;

/** `onDeath` is called when a process that was ready ends without our doing. */
export function managedProcess(
  spec: ProcessSpec,
  folders: ProcessFolders,
  onDeath: (error: UserError) => void,
): ManagedProcess {
  const logFile = join(folders.logs, `${spec.name}.log`);
  const state: { running: Running | undefined; ready: boolean } = {
    running: undefined,
    ready: false,
  };

  const launch = (): Running => {
    const log = openSync(logFile, 'a');
    // Detached: a Ctrl-C at the terminal reaches us alone, and we stop the processes in order.
    const child = spawn(spec.command, spec.args, {
      env: spec.env,
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    const record = child.pid === undefined ? undefined : describeProcess(spec.name, child.pid);
    if (record !== undefined) writeRecord(folders.pids, record);
    const running: Running = {
      child,
      expected: false,
      exited: new Promise((resolve) => {
        child.on('error', () => resolve());
        child.on('exit', () => resolve());
      }),
    };
    void running.exited.then(() => {
      removeRecord(folders.pids, spec.name);
      const died = state.running === running && !running.expected;
      if (state.running === running) state.running = undefined;
      if (died && state.ready) onDeath(failure(`ended unexpectedly (${howEnded(child)})`));
    });
    return running;
  };

  const failure = (what: string): UserError =>
    new UserError(
      `${spec.name} ${what}. The end of ${relative(process.cwd(), logFile)}:\n${tail(logFile)}`,
    );

  const end = async (signal: NodeJS.Signals, graceMs: number): Promise<void> => {
    const { running } = state;
    if (running?.child.pid === undefined) return;
    running.expected = true;
    signalGroup(running.child.pid, signal);
    const timer = setTimeout(() => {
      if (running.child.pid !== undefined) signalGroup(running.child.pid, 'SIGKILL');
    }, graceMs);
    await running.exited;
    clearTimeout(timer);
  };

  return {
    name: spec.name,
    logFile,
    pid: () => state.running?.child.pid,
    start: async (signal) => {
      if (state.running !== undefined) throw new Error(`${spec.name} runs already`);
      state.ready = false;
      const running = launch();
      state.running = running;
      const deadline = Date.now() + spec.readyWithinMs;
      while (!(await spec.isReady())) {
        if (signal.aborted) throw abortReason(signal);
        if (state.running !== running)
          throw failure(`ended while starting (${howEnded(running.child)})`);
        if (Date.now() > deadline)
          throw failure(`was not ready within ${Math.round(spec.readyWithinMs / 1_000)} s`);
        await pause(readyPollMs);
      }
      if (state.running !== running) throw failure(`ended while starting`);
      state.ready = true;
    },
    stop: () => end('SIGTERM', spec.stopGraceMs),
    kill: () => end('SIGKILL', 0),
  };
}

/** The last lines of a log file, indented. */
function tail(logFile: string): string {
  const text = existsSync(logFile) ? lastLines(readFileSync(logFile, 'utf8'), shownLines) : '';
  return (text === '' ? '(nothing)' : text).replace(/^/gm, '    ');
}

/** Node gives a program that could not be started a negative exit code. */
function howEnded(child: ChildProcess): string {
  if (child.signalCode !== null) return `signal ${child.signalCode}`;
  return child.exitCode === null || child.exitCode < 0
    ? 'it could not be run'
    : `exit code ${child.exitCode}`;
}
