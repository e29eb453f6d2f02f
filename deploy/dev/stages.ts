/**
 * What `make test` runs, in this order. A level of tests is a folder of `test/`, but for the matrix, one file that is a
 * stage of its own so that its time is seen; every other stage is an npm script.
 */
import { availableParallelism } from 'node:os';

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
  /** Test files side by side. */
  atOnce: number;
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

/** For levels that keep a core busy. Node's own `true` is one less, so on two cores nothing would run side by side. */
const cores = availableParallelism();

const matrix = 'test/workflows/everyStep.test.ts';

function level(
  name: string,
  options: Pick<TestStage, 'atOnce' | 'timeoutMs' | 'verbose'> & Partial<TestStage>,
): TestStage {
  return { kind: 'tests', name, files: `test/${name}/**/*.test.ts`, except: [], ...options };
}

/** All of them, in the order `make test` runs them. */
export const stages: readonly Stage[] = [
  script('check'),
  script('lint'),
  script('fmt:check'),
  level('unit', { atOnce: cores, timeoutMs: minute, verbose: false }),
  level('simulator', { atOnce: cores, timeoutMs: minute, verbose: false }),
  script('conformance', 'testdata/pve/9.2'),
  level('steps', { atOnce: cores, timeoutMs: 2 * minute, verbose: false }),
  level('pve', { atOnce: 1, timeoutMs: 2 * minute, verbose: false }),
  level('workflows', { atOnce: 2, timeoutMs: 3 * minute, verbose: false, except: [matrix] }),
  level('matrix', { atOnce: 1, timeoutMs: 3 * minute, verbose: false, files: matrix }),
  level('replay', { atOnce: 1, timeoutMs: 2 * minute, verbose: false }),
  // Each file has a stack of its own, which mostly waits.
  level('system', { atOnce: 2, timeoutMs: 10 * minute, verbose: true }),
  level('docs', { atOnce: cores, timeoutMs: minute, verbose: false }),
];
