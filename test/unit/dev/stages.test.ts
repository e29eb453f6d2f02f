import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { describe, test } from 'node:test';
import { checkout } from '../../../deploy/dev/stackFolder.ts';
import { stages } from '../../../deploy/dev/stages.ts';
import { filesOf } from '../../../deploy/dev/testStage.ts';

describe('the stages of make test', () => {
  const staged = stages.flatMap((stage) =>
    stage.kind === 'tests' ? filesOf(stage).map((file) => ({ file, stage: stage.name })) : [],
  );

  test('run every test file, and each one once', () => {
    const all = globSync('test/**/*.test.ts', { cwd: checkout });
    assert.deepEqual(staged.map(({ file }) => file).sort(), all.sort());
  });

  test('show the time of the matrix by itself', () => {
    const matrix = staged.filter(({ stage }) => stage === 'matrix').map(({ file }) => file);
    assert.deepEqual(matrix, ['test/workflows/everyStep.test.ts']);
  });
});
