import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { z } from 'zod';
import { checkout } from '../../../deploy/dev/stackFolder.ts';
import { groupsIn, source } from '../../support/pages.ts';

/**
 * Node options and program of everything of ours that people start: npm scripts, and targets of the Makefile. Controller
 * and worker read flags in their own way, see test/unit/runtime/env.test.ts.
 */
const commandLines = [
  ...new Set(
    groupsIn(
      [source('package.json'), source('Makefile')],
      /(?:": "node|\$\(NODE\)) ((?:--\S+ )?(?:api|deploy|test|worker\/bundle)\S+\.ts)/g,
    ),
  ),
];

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

async function start(line: string, ...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [...line.split(' '), ...args], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (child.exitCode === null) await once(child, 'exit');
  return { code: child.exitCode, stdout, stderr };
}

const stack = /^\s+at /m;

test('every program of ours is looked at', () => {
  assert.ok(commandLines.length >= 18, commandLines.join('\n'));
});

for (const line of commandLines) {
  test(`${line}, started with an option it does not know, ends with one sentence that names it`, async () => {
    const { code, stdout, stderr } = await start(line, '--no-such-option');
    assert.notEqual(code, 0);
    assert.equal(stdout, '');
    assert.match(stderr, /^.*--no-such-option.*\n$/);
  });
}

/** Help and mistakes are told by the same parser, so a few of them will do. */
const askedForHelp = ['deploy/dev/demo.ts', 'test/contract/main.ts', 'test/workflows/walk/main.ts'];

for (const line of askedForHelp) {
  test(`${line} --help says how it is used`, async () => {
    const { code, stdout, stderr } = await start(line, '--help');
    assert.equal(code, 0, stderr);
    assert.equal(stderr, '');
    assert.match(stdout, /^Usage: /);
  });
}

const cases: readonly [string, readonly string[], RegExp][] = [
  ['test/simulator/main.ts', ['--port=x'], /'x' is invalid\. It must be a port/],
  ['test/simulator/main.ts', ['--fixture=/nosuch.yaml'], /no such file.*\/nosuch\.yaml/],
  ['test/simulator/conformance/main.ts', ['/nosuch'], /no such file.*\/nosuch/],
  ['test/contract/main.ts', ['--only=nosuch'], /Allowed choices are proven, changed, nonGoal/],
  ['test/contract/main.ts', ['--page=/nosuch'], /\/nosuch cannot be read \(ENOENT\)/],
  ['test/workflows/matrix/main.ts', ['--filter=('], /must be a regular expression/],
  ['test/workflows/matrix/main.ts', ['--filter=nosuch'], /^None of the \d+ cells fits \/nosuch\//],
  ['test/workflows/walk/main.ts', ['--operations=0'], /a whole number, at least 1/],
  ['test/bench/create.ts', ['--time-scale=0'], /must be a number above 0/],
  ['test/bench/idle.ts', ['--sizes=10,1'], /They must rise/],
  ['test/replay/record.ts', ['nosuch'], /'nosuch' is invalid/],
  ['deploy/dev/runTests.ts', ['nosuch'], /'nosuch' is invalid.*Allowed choices are check, /],
];
for (const [line, args, expected] of cases) {
  test(`${line} ${args.join(' ')} ends with a sentence, not with a stack`, async () => {
    const { code, stderr } = await start(line, ...args);
    assert.equal(code, 1);
    assert.match(stderr, expected);
    assert.doesNotMatch(stderr, stack);
  });
}

test('a simulator whose port is in use says which one, and what helps', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  try {
    const { port } = z.object({ port: z.number() }).parse(other.address());
    const { code, stderr } = await start(
      'test/simulator/main.ts',
      `--port=${port}`,
      '--admin-port=0',
    );
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^127\\.0\\.0\\.1:${port} is in use: .*--port.*\\n$`));
  } finally {
    other.close();
  }
});

/** A program of ours that says `ready`, and does `rest` with the signal it was given. */
function program(rest: string): ChildProcess {
  const imports = `
    import { once } from 'node:events';
import { createServer } from 'node:net';
    import { Command } from 'commander';
    import { printLine, runProgram, UserError } from '${checkout}/deploy/dev/program.ts';`;
  const code = `${imports}
    setInterval(() => undefined, 1_000);
    runProgram(new Command('test'), async (signal) => { printLine('ready'); ${rest} });`;
  return spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

const interrupted: readonly [string, string, string][] = [
  ['stops what it started and tells so', "await once(signal, 'abort'); throw new UserError('All is stopped.');", 'All is stopped.\n'], // prettier-ignore
  ['says that it was, when that is all', "await once(signal, 'abort'); signal.throwIfAborted();", 'Interrupted.\n'], // prettier-ignore
  ['tells nothing of what broke off', "await once(signal, 'abort'); throw new Error('fetch failed');", 'Interrupted.\n'], // prettier-ignore
];
for (const [title, rest, expected] of interrupted) {
  test(`a program that is interrupted ${title}, with code 130`, async () => {
    const child = program(rest);
    assert.ok(child.stdout !== null && child.stderr !== null);
    const said = text(child.stderr);
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    await once(child, 'close');
    assert.equal(await said, expected);
    assert.equal(child.exitCode, 130);
  });
}
