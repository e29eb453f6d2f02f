import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertSameNames, filesOf, groupsIn, namesOf, read, rowsOf, sectionOf, source } from '../support/pages.ts'; // prettier-ignore

const table = sectionOf(read('docs/operations.md'), '## Log');
const code = filesOf()
  .filter((path) => /^(activities|worker)\/.*\.ts$/.test(path))
  .map(source);
/** The constant sentence of each line about Proxmox, and the level it is written at where the call stands beside it. */
const sentences = groupsIn(code, /'((?:proxmox|skipping|WARNING:) [^']+)'/g);

test('the page lists the lines about Proxmox that the code writes, and no others', () => {
  assert.ok(sentences.length > 20);
  assertSameNames(namesOf(table), [...new Set(sentences)]);
});

test('the page gives each line the level it is written at', () => {
  const written = new Map<string, string>();
  for (const text of code) {
    for (const [, level = '', msg = ''] of text.matchAll(
      /log\.(trace|debug|info|warn)\((?:(?!log\.)[^;])*?'((?:proxmox|skipping|WARNING:) [^']+)'/g,
    )) {
      written.set(msg, level);
    }
  }
  assert.ok(written.size > 20);
  const told = new Map(rowsOf(table).map(([line = '', level = '']) => [line.replaceAll('`', ''), level]));
  for (const [msg, level] of written) {
    assert.equal(told.get(msg), level === 'warn' ? 'always' : level, msg);
  }
});
