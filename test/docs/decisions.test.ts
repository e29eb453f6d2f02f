import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { assertSameNames, groupsIn, headingsOf, namesOf, pages, read, rowsOf, sectionOf, source } from '../support/pages.ts'; // prettier-ignore

const records = pages.filter(({ path }) => /^docs\/decisions\/\d{4}-[a-z0-9-]+\.md$/.test(path));
const dependencies = read('docs/decisions/dependencies.md');
const list = z.record(z.string(), z.string());
const manifest = z
  .object({ dependencies: list, devDependencies: list })
  .parse(JSON.parse(source('package.json')));

test('decisions are numbered without a gap, and each says context, choice and consequence', () => {
  assert.ok(records.length > 0);
  for (const [index, page] of records.entries()) {
    const number = index + 1;
    assert.ok(page.path.startsWith(`docs/decisions/${String(number).padStart(4, '0')}-`), page.path);
    assert.match(headingsOf(page, 1).join(), new RegExp(`^${number}\\. `), page.path);
    assert.deepEqual(headingsOf(page, 2), ['Context', 'Choice', 'Consequence'], page.path);
  }
});

test('architecture.md lists every decision under its number', () => {
  const rows = rowsOf(sectionOf(read('docs/architecture.md'), '## Decisions'));
  assert.deepEqual(
    groupsIn(
      rows.map(([link = '']) => link),
      /\(([^)]+)\)/g,
    ),
    records.map(({ path }) => path.replace('docs/', '')),
  );
});

test('every dependency is explained where it belongs, and nothing else is', () => {
  const atRunTime = namesOf(sectionOf(dependencies, '## At run time'));
  const forDevelopment = namesOf(sectionOf(dependencies, '## For development'));
  assertSameNames(atRunTime, Object.keys(manifest.dependencies));
  assertSameNames(forDevelopment, Object.keys(manifest.devDependencies));
});

test('every dependency has an exact version', () => {
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    assert.match(version, /^\d+\.\d+\.\d+$/, name);
  }
});

test('the licence is the one that package.json names', () => {
  assert.equal(z.object({ license: z.string() }).parse(JSON.parse(source('package.json'))).license, 'Apache-2.0'); // prettier-ignore
  const licence = source('LICENSE');
  assert.match(licence, /Apache License\s+Version 2\.0/);
  assert.match(licence, /Copyright \d{4} The egress-proxies-operator authors/);
});
