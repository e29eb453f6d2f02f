/** A whole private stack for system tests: the very code of `make up`, plus crashes, restarts and a look at everything. */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { lastLines } from '../../../deploy/dev/command.ts';
import { messageOf, type Log } from '../../../deploy/dev/program.ts';
import { startStack as startLocalStack, type Stack, type StackOptions } from '../../../deploy/dev/stack.ts'; // prettier-ignore
import { stopOrder, testStackPrefix, type ProcessName } from '../../../deploy/dev/stackFolder.ts';
import { listWorkflows, type WorkflowRow } from '../../../deploy/dev/temporalView.ts';
import { eventually } from '../../support/eventually.ts';

export type SystemStackOptions = Partial<Omit<StackOptions, 'name' | 'log' | 'signal'>>;

export interface SystemStack extends Omit<Stack, 'kubectl' | 'stop'> {
  /** kubectl as the administrator; returns standard output, throws with what it said when it fails. */
  kubectl(...args: readonly string[]): Promise<string>;
  /** The same, returning whatever came: for what must be refused. */
  tryKubectl(args: readonly string[], input?: string): Promise<KubectlAnswer>;
  /** `kubectl apply --server-side` of a YAML or JSON text. */
  apply(manifest: string): Promise<void>;
  /** `kubectl get … -w`: collects the lines it prints. */
  watch(...args: readonly string[]): KubectlWatch;
  /** kill -9; resolves when the process is gone. */
  crash(name: ProcessName): Promise<void>;
  /** Starts a crashed or not yet started process with its flags, ports and files; resolves when it is ready. */
  start(name: ProcessName): Promise<void>;
  /** SIGTERM, as a rollout does. */
  shutDown(name: ProcessName): Promise<void>;
  /** Everything a process has written so far, over all its runs. */
  log(name: ProcessName): string;
  /** The logs of all processes, one after the other. */
  allLogs(): string;
  /** By Temporal's list filter; all of them without one. */
  workflows(query?: string): Promise<WorkflowRow[]>;
  /** The history of a workflow's current run, as JSON that can be replayed. */
  history(workflowId: string): Promise<string>;
  /** Polls `check` until it neither throws nor returns false; ends at once when a process dies by itself. */
  eventually(check: () => unknown, withinMs: number): Promise<void>;
  /** Ends everything, and throws when a process had ended by itself meanwhile. Logs are kept when `failed`. */
  stop(failed?: boolean): Promise<void>;
}

export interface KubectlWatch {
  /** Whole lines printed so far. */
  lines(): readonly string[];
  stop(): Promise<void>;
}

export interface KubectlAnswer {
  code: number;
  stdout: string;
  stderr: string;
}

/** Fast enough for tests; the proportions between tasks stay. */
const defaultTimeScale = 0.1;
/** Between two looks at a stack: each is a request or a process, and the stack needs the processors too. */
const pollMs = 100;

/** Starts a stack of the test's own; throws UserError with the last lines of a log when a process does not come up. */
export async function startStack(options: SystemStackOptions = {}): Promise<SystemStack> {
  const started: string[] = [];
  const log: Log = (line) => started.push(line);
  const endWithTest = new AbortController();
  const unsubscribe = exitOnSignals();
  const stack = await startLocalStack({
    timeScale: defaultTimeScale,
    temporalDb: 'file',
    ...options,
    name: `${testStackPrefix}${process.pid}-${randomBytes(3).toString('hex')}`,
    log,
    signal: endWithTest.signal,
  }).catch((error: unknown) => {
    throw new Error(`${messageOf(error)}\nStarted so far: ${started.join(', ')}`, { cause: error });
  });
  let death: Error | undefined;
  stack.failure.catch((error: unknown) => {
    death = error instanceof Error ? error : new Error(String(error));
  });
  const read = (name: ProcessName): string => {
    try {
      return readFileSync(stack.processes[name].logFile, 'utf8');
    } catch {
      // Never started: no log.
      return '';
    }
  };
  return {
    ...stack,
    kubectl: (...args) => stack.kubectl.must(args),
    tryKubectl: (args, input) => stack.kubectl.run(args, input === undefined ? {} : { input }),
    apply: async (manifest) => {
      await stack.kubectl.must(['apply', '--server-side', '-f', '-'], { input: manifest });
    },
    watch: (...args) => startWatch(stack, args),
    crash: (name) => stack.processes[name].kill(),
    start: (name) => stack.processes[name].start(endWithTest.signal),
    shutDown: (name) => stack.processes[name].stop(),
    log: read,
    allLogs: () => stopOrder.map(read).join('\n'),
    workflows: (query = '') => listWorkflows(stack.temporal, query),
    history: (workflowId) =>
      stack.temporalCli('workflow', 'show', `--workflow-id=${workflowId}`, '--output=json'),
    eventually: (check, withinMs) =>
      Promise.race([eventually(check, withinMs, pollMs), stack.failure]),
    stop: async (failed = false) => {
      endWithTest.abort();
      // Nothing in it is needed any more: no drain is waited for.
      for (const name of stopOrder) await stack.processes[name].kill();
      await stack.stop();
      unsubscribe();
      if (failed || death !== undefined) throwOnDeath(death, stack.folder.logs);
      else rmSync(stack.folder.path, { recursive: true, force: true });
    },
  };
}

function startWatch(stack: Stack, args: readonly string[]): KubectlWatch {
  const ended = new AbortController();
  const lines: string[] = [];
  let rest = '';
  const onStdout = (text: string): void => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
  };
  const running = stack.kubectl
    .run([...args, '-w'], { signal: ended.signal, onStdout })
    .catch(() => undefined);
  return {
    lines: () => lines,
    stop: async () => {
      ended.abort();
      await running;
    },
  };
}

function throwOnDeath(death: Error | undefined, logs: string): void {
  process.stderr.write(`The logs of this stack are kept in ${logs}\n`);
  if (death !== undefined) throw death;
}

/** A test run that is interrupted ends by `exit`, where the stack kills what it started; a plain signal would leave it. */
function exitOnSignals(): () => void {
  const exit = (): void => process.exit(1);
  process.on('SIGINT', exit);
  process.on('SIGTERM', exit);
  return () => {
    process.off('SIGINT', exit);
    process.off('SIGTERM', exit);
  };
}

/** The last lines of one process's log, each cut to what a person reads, for messages of assertions. */
export function endOfLog(stack: SystemStack, name: ProcessName, lines = 15): string {
  return lastLines(stack.log(name), lines).replaceAll(/^(.{500}).+$/gm, '$1…');
}
