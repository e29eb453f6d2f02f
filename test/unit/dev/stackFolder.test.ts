import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { describe, it } from 'node:test';
import { stackFolder, stackNames } from '../../../deploy/dev/stackFolder.ts';

describe('the folder .local', () => {
  it('may hold what is no stack, and is none of the business of `make down`', (t) => {
    const name = `of-somebody-${process.pid}`;
    const { path, pids } = stackFolder(name);
    t.after(() => rmSync(path, { recursive: true }));
    mkdirSync(path, { recursive: true });
    assert.ok(!stackNames().includes(name));
    mkdirSync(pids);
    assert.ok(stackNames().includes(name));
  });
});
