import { delimiter, join } from 'node:path';
import { Argument, Command } from 'commander';
import { runCommand } from './command.ts';
import { printLine, runProgram } from './program.ts';
import { stages } from './stages.ts';
import type { ScriptStage, TestStage } from './stages.ts';
import { checkout, endCrashedTestStacks } from './stackFolder.ts';
import { addCounts, complaints, noTests, runTestStage } from './testStage.ts';
import type { TestCounts } from './testStage.ts';
import { describeTools, findTools } from './tools.ts';

/** `make test`: every stage, or those named; exit code 1 when anything failed, with each failure again and node's own summary at the end. */
const names = stages.map(({ name }) => name);
const command = new Command('make test, npm run test:<level>')
  .description('Runs every stage of tests, or those named.')
  .addArgument(new Argument('[stages...]', 'some of them').choices(names));

runProgram(command, async (signal) => {
  const chosen = stages.filter(
    ({ name }) => command.args.length === 0 || command.args.includes(name),
  );
  // What a stage starts as `node` is the Node of this checkout, not the system's.
  process.env['PATH'] = [join(checkout, 'node_modules/.bin'), process.env['PATH']].join(delimiter);
  process.chdir(checkout);
  header('tools');
  printLine(describeTools(await findTools(printLine, signal)));
  await endCrashedTestStacks();
  const startedAt = Date.now();
  let total = noTests;
  const failed: string[] = [];
  const failures: string[] = [];
  for (const stage of chosen) {
    signal.throwIfAborted();
    header(stage.name);
    const stageStartedAt = Date.now();
    const outcome =
      stage.kind === 'script' ? await runScript(stage, signal) : await runTests(stage, signal);
    total = addCounts(total, outcome.counts);
    failures.push(...outcome.failures);
    if (!outcome.ok) {
      failed.push(stage.name);
      // What failed without a failed test, such as the linter, counts as one: the last line must not say «0 failed».
      if (outcome.counts.fail + outcome.counts.cancelled === 0)
        total = addCounts(total, oneFailure);
    }
    printLine(`${outcome.summary} (${seconds(stageStartedAt)} s)`);
  }
  for (const failure of failures) printLine(`\n${firstLines(failure, 12)}`);
  printSummary(total, failed, seconds(startedAt));
  return failed.length === 0 ? 0 : 1;
});

const oneFailure: TestCounts = { ...noTests, tests: 1, fail: 1 };

interface Outcome {
  ok: boolean;
  summary: string;
  counts: TestCounts;
  failures: readonly string[];
}

async function runScript(stage: ScriptStage, signal: AbortSignal): Promise<Outcome> {
  const [script = '', ...args] = stage.script;
  const write = (text: string): void => void process.stdout.write(text);
  const { code } = await runCommand('npm', ['run', '--silent', script, '--', ...args], {
    cwd: checkout,
    signal,
    onStdout: write,
    onStderr: write,
  });
  const ok = code === 0;
  return {
    ok,
    summary: ok ? 'ok' : `FAILED with exit code ${code}`,
    counts: noTests,
    failures: [],
  };
}

async function runTests(stage: TestStage, signal: AbortSignal): Promise<Outcome> {
  const { passed, counts, filesWithoutTests, failures } = await runTestStage(
    stage,
    printLine,
    signal,
  );
  const wrong = complaints(counts, filesWithoutTests);
  const ok = passed && wrong.length === 0;
  const numbers = `${counts.pass} passed, ${counts.fail + counts.cancelled} failed`;
  return { ok, summary: [ok ? 'ok' : 'FAILED', numbers, ...wrong].join(': '), counts, failures };
}

function header(name: string): void {
  printLine(`\n=== ${name}`);
}

/** The lines node's runner ends with, and one that is plain. */
function printSummary(counts: TestCounts, failed: readonly string[], took: string): void {
  printLine('\n=== summary');
  if (failed.length > 0) printLine(`failed stages: ${failed.join(', ')}`);
  const rows = { ...counts, duration_ms: Number(took) * 1_000 };
  for (const [name, value] of Object.entries(rows)) printLine(`ℹ ${name} ${value}`);
  printLine(`${counts.pass} passed, ${counts.fail + counts.cancelled} failed`);
}

/** The whole is where the test ran; a failure with a long comparison must not push the others off the end. */
function firstLines(text: string, count: number): string {
  const lines = text.split('\n');
  return lines.length > count ? [...lines.slice(0, count), '    …'].join('\n') : text;
}

function seconds(since: number): string {
  return ((Date.now() - since) / 1_000).toFixed(1);
}
