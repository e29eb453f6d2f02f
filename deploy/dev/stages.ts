/**
 * What `make test` runs, in this order. A level of tests is a folder of `test/`, but for the matrix, one file that is a
 * stage of its own so that its time is seen; every other stage is an npm script.
 */

export interface ScriptStage {
  kind: 'script';
  name: string;
  /** An npm script and its arguments. */
  script: readonly string[];
}

export interface TestStage {
  kind: 'tests';
  name: string;
  /** Files, relative to the checkout. */
  files: string;
  /** Files among them that another stage runs. */
  except: readonly string[];
  /** Side by side, where a test file owns nothing heavy; else one file after the other. */
  parallel: boolean;
  /** Bound of one test. */
  timeoutMs: number;
  /** Every test is named as it ends, for levels where one takes long. */
  verbose: boolean;
}

export type Stage = ScriptStage | TestStage;

const second = 1_000;
const minute = 60 * second;

function script(name: string, ...args: readonly string[]): ScriptStage {
  return { kind: 'script', name, script: [name, ...args] };
}

const matrix = 'test/workflows/everyStep.test.ts';

function level(
  name: string,
  options: Pick<TestStage, 'parallel' | 'timeoutMs' | 'verbose'> & Partial<TestStage>,
): TestStage {
  return { kind: 'tests', name, files: `test/${name}/**/*.test.ts`, except: [], ...options };
}

export const stages: readonly Stage[] = [
  script('check'),
  script('lint'),
  script('fmt:check'),
  level('unit', { parallel: true, timeoutMs: minute, verbose: false }),
  level('simulator', { parallel: true, timeoutMs: minute, verbose: false }),
  script('conformance', 'testdata/pve/9.2'),
  level('steps', { parallel: true, timeoutMs: 2 * minute, verbose: false }),
  level('pve', { parallel: false, timeoutMs: 2 * minute, verbose: false }),
  level('workflows', { parallel: false, timeoutMs: 3 * minute, verbose: false, except: [matrix] }),
  level('matrix', { parallel: false, timeoutMs: 3 * minute, verbose: false, files: matrix }),
  level('replay', { parallel: false, timeoutMs: 2 * minute, verbose: false }),
  level('system', { parallel: false, timeoutMs: 10 * minute, verbose: true }),
  level('docs', { parallel: true, timeoutMs: minute, verbose: false }),
];
