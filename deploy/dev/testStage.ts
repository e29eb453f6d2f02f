import { globSync } from 'node:fs';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';
import type { Log } from './program.ts';
import type { TestStage } from './stages.ts';
import { checkout } from './stackFolder.ts';

/** How many tests ended how, as node's runner counts. */
export interface TestCounts {
  tests: number;
  suites: number;
  pass: number;
  fail: number;
  cancelled: number;
  skipped: number;
  todo: number;
}

/** Start of a sum. */
export const noTests: TestCounts = {
  tests: 0,
  suites: 0,
  pass: 0,
  fail: 0,
  cancelled: 0,
  skipped: 0,
  todo: 0,
};

/** The sum of two counts. */
export function addCounts(a: TestCounts, b: TestCounts): TestCounts {
  return {
    tests: a.tests + b.tests,
    suites: a.suites + b.suites,
    pass: a.pass + b.pass,
    fail: a.fail + b.fail,
    cancelled: a.cancelled + b.cancelled,
    skipped: a.skipped + b.skipped,
    todo: a.todo + b.todo,
  };
}

/** What is wrong with a stage beside failed tests; empty when nothing is. Nothing may be skipped or left for later. */
export function complaints(counts: TestCounts, filesWithoutTests: readonly string[]): string[] {
  return [
    ...(counts.tests === 0 ? ['no test ran'] : []),
    ...(counts.skipped > 0 ? [`${counts.skipped} tests were skipped`] : []),
    ...(counts.todo > 0 ? [`${counts.todo} tests are marked todo`] : []),
    ...filesWithoutTests.map((file) => `${file} holds no test`),
  ];
}

export interface TestOutcome {
  /** Node's verdict: also a suite that breaks outside its tests, which no count shows. */
  passed: boolean;
  counts: TestCounts;
  filesWithoutTests: string[];
  /** Each failure as it was shown, to be said again at the very end, where nobody has to look for it. */
  failures: string[];
}

/** The stage's test files, relative to the checkout. */
export function filesOf({ files, except }: TestStage): string[] {
  return globSync(files, { cwd: checkout, exclude: except }).sort();
}

/**
 * Runs one level with node's own runner, a process per file. Failures are shown as node shows them, passes only on
 * request. Node bounds each test, but not a file that stays alive after its last one: when nothing at all is heard for
 * `silenceOf(stage)`, the level is given up, and the files that had not ended are named.
 */
export async function runTestStage(
  stage: TestStage,
  log: Log,
  signal: AbortSignal,
): Promise<TestOutcome> {
  const files = filesOf(stage);
  const outcome: TestOutcome = {
    passed: false,
    counts: noTests,
    filesWithoutTests: [],
    failures: [],
  };
  if (files.length === 0) return outcome;
  const silence = new AbortController();
  const watchdog = setTimeout(() => silence.abort(), silenceOf(stage));
  const open = new Set(files);
  const stream = run({
    cwd: checkout,
    files: files.map((file) => join(checkout, file)),
    concurrency: stage.atOnce,
    isolation: 'process',
    timeout: stage.timeoutMs,
    signal: AbortSignal.any([signal, silence.signal]),
  });
  const events: AsyncIterable<TestEvent> = stream;
  for await (const event of events) {
    watchdog.refresh();
    take(outcome, event);
    if (event.type === 'test:summary') open.delete(relative(checkout, event.data.file ?? ''));
    const failure = describeFailure(event);
    if (failure !== undefined) outcome.failures.push(failure);
    const text = failure ?? describeEvent(event, stage.verbose);
    if (text !== undefined) log(text);
  }
  clearTimeout(watchdog);
  if (!silence.signal.aborted) return outcome;
  const hung = `✖ nothing was heard for ${silenceOf(stage) / 60_000} minutes; not ended: ${[...open].join(', ')}`;
  log(hung);
  return { ...outcome, passed: false, failures: [...outcome.failures, hung] };
}

/** ms without a word from any test of the level: longer than one test may take, and than a file needs to start its stack. */
function silenceOf(stage: TestStage): number {
  return stage.timeoutMs + 120_000;
}

function take(outcome: TestOutcome, event: TestEvent): void {
  if (event.type === 'test:summary' && event.data.file === undefined) {
    outcome.counts = countsOf(event.data.counts);
    outcome.passed = event.data.success;
  }
  const file = emptyFile(event);
  if (file !== undefined) outcome.filesWithoutTests.push(file);
}

/** Node's own count of failures is not in its published types, but it is what the others leave. */
function countsOf(node: {
  tests: number;
  suites: number;
  passed: number;
  cancelled: number;
  skipped: number;
  todo: number;
}): TestCounts {
  // prettier-ignore
  const { tests, suites, passed, cancelled, skipped, todo } = node;
  const fail = tests - passed - cancelled - skipped - todo;
  return { tests, suites, pass: passed, fail, cancelled, skipped, todo };
}

/** Node counts a file without tests as one passed test that has the file's name. */
function emptyFile(event: TestEvent): string | undefined {
  if (event.type !== 'test:pass' || event.data.nesting !== 0) return undefined;
  const { name, file } = event.data;
  if (file === undefined || !(name === file || file.endsWith(`/${name}`))) return undefined;
  return relative(checkout, file);
}

/** What people see of an event that is no failure: passes on request, whatever a test printed. Totals come once, at the end. */
function describeEvent(event: TestEvent, verbose: boolean): string | undefined {
  if (event.type === 'test:stdout' || event.type === 'test:stderr')
    return event.data.message.trimEnd();
  if (event.type !== 'test:pass' || !verbose) return undefined;
  const { name, nesting, details } = event.data;
  return `${'  '.repeat(nesting)}✔ ${name} (${(details.duration_ms / 1_000).toFixed(1)} s)`;
}

/** A failure whole; undefined for anything else. */
function describeFailure(event: TestEvent): string | undefined {
  if (event.type !== 'test:fail') return undefined;
  const { name, file, line, details } = event.data;
  // A suite fails because of its tests, which are shown themselves.
  const { error } = details;
  if ('failureType' in error && error.failureType === 'subtestsFailed') return undefined;
  const where = file === undefined ? '' : ` (${relative(checkout, file)}:${line ?? 1})`;
  const reason = typeof error.cause === 'string' ? error.cause : inspect(error.cause ?? error);
  return `✖ ${name}${where}\n${reason.replace(/^/gm, '    ')}`;
}
