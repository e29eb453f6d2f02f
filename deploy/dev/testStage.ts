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
}

/** The stage's test files, relative to the checkout. */
export function filesOf({ files, except }: TestStage): string[] {
  return globSync(files, { cwd: checkout, exclude: except }).sort();
}

/** Runs one level with node's own runner, a process per file. Failures are shown as node shows them, passes only on request. */
export async function runTestStage(
  stage: TestStage,
  log: Log,
  signal: AbortSignal,
): Promise<TestOutcome> {
  const files = filesOf(stage);
  if (files.length === 0) return { passed: false, counts: noTests, filesWithoutTests: [] };
  const stream = run({
    cwd: checkout,
    files: files.map((file) => join(checkout, file)),
    concurrency: stage.atOnce,
    isolation: 'process',
    timeout: stage.timeoutMs,
    signal,
  });
  let counts = noTests;
  let passed = false;
  const filesWithoutTests: string[] = [];
  const events: AsyncIterable<TestEvent> = stream;
  for await (const event of events) {
    if (event.type === 'test:summary' && event.data.file === undefined) {
      counts = countsOf(event.data.counts);
      passed = event.data.success;
    }
    const file = emptyFile(event);
    if (file !== undefined) filesWithoutTests.push(file);
    const text = describeEvent(event, stage.verbose);
    if (text !== undefined) log(text);
  }
  return { passed, counts, filesWithoutTests };
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

/** What people see of an event: failures whole, passes on request, whatever a test printed. Totals come once, at the end. */
function describeEvent(event: TestEvent, verbose: boolean): string | undefined {
  if (event.type === 'test:stdout' || event.type === 'test:stderr')
    return event.data.message.trimEnd();
  if (event.type === 'test:pass') {
    const { name, nesting, details } = event.data;
    const took = (details.duration_ms / 1_000).toFixed(1);
    return verbose ? `${'  '.repeat(nesting)}✔ ${name} (${took} s)` : undefined;
  }
  if (event.type !== 'test:fail') return undefined;
  const { name, file, line, details } = event.data;
  // A suite fails because of its tests, which are shown themselves.
  const { error } = details;
  if ('failureType' in error && error.failureType === 'subtestsFailed') return undefined;
  const where = file === undefined ? '' : ` (${relative(checkout, file)}:${line ?? 1})`;
  const reason = typeof error.cause === 'string' ? error.cause : inspect(error.cause ?? error);
  return `✖ ${name}${where}\n${reason.replace(/^/gm, '    ')}`;
}
