import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { anchorsOf, codeOf, exists, fencesOf, filesOf, pages, proseOf, read, resolveLink } from '../support/pages.ts'; // prettier-ignore
import type { Page } from '../support/pages.ts';

const files = filesOf();
const fileNames = new Set(files.map((path) => path.replace(/.*\//, '')));
const folders = new Set(files.flatMap((path) => path.split('/').slice(0, -1)));
const top = new Set(files.map((path) => path.replace(/\/.*/, '')));
top.add('testdata');

interface Link {
  page: Page;
  target: string;
}
const links: Link[] = pages.flatMap((page) =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => ({ page, target })),
);

/** Names that stand for many (`<step>`, `.ts`, globs) are no paths. */
function isPath(code: string): boolean {
  return /^[\w.@-]+(\/[\w.@-]+)*\/?$/.test(code) && !/^\.\w{1,4}$/.test(code);
}

test('every link between pages leads to a file, and its anchor to a heading', () => {
  const inside = links.filter(({ target }) => !/^[a-z]+:/.test(target));
  assert.ok(inside.length > 20);
  for (const { page, target } of inside) {
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page.path : resolveLink(page, path);
    assert.ok(exists(file), `${page.path} links to ${target}`);
    if (anchor === undefined) continue;
    assert.ok(anchorsOf(read(file)).includes(anchor), `${page.path} links to ${target}`);
  }
});

test('every path that a page names exists', () => {
  const named = pages.flatMap((page) =>
    codeOf(page)
      .filter((code) => isPath(code) && code.includes('/') && top.has(code.replace(/\/.*/, '')))
      .map((code) => ({ page, code })),
  );
  assert.ok(named.length > 50);
  const missing = named.filter(({ code }) => !exists(code));
  assert.deepEqual(
    missing.map(({ page, code }) => `${page.path}: ${code}`),
    [],
  );
});

test('every file that a page names without its folder exists somewhere', () => {
  const named = pages.flatMap((page) =>
    codeOf(page)
      .filter((code) => isPath(code) && !code.includes('/') && /\.(ts|md|json)$/.test(code))
      .map((code) => ({ page, code })),
  );
  assert.ok(named.length > 5);
  const missing = named.filter(({ code }) => !fileNames.has(code) && !folders.has(code));
  assert.deepEqual(
    missing.map(({ page, code }) => `${page.path}: ${code}`),
    [],
  );
});

test('every block of YAML in a page can be read', () => {
  const blocks = pages.flatMap((page) => fencesOf(page).map((fence) => ({ page, ...fence })));
  const yaml = blocks.filter(({ language }) => language === 'yaml');
  assert.ok(yaml.length > 0);
  for (const { page, text } of yaml) {
    const errors = parseAllDocuments(text).flatMap((document) => document.errors);
    assert.deepEqual(errors, [], page.path);
  }
});

test('every fence is closed', () => {
  for (const { path, text } of pages) {
    assert.equal((text.match(/^```/gm) ?? []).length % 2, 0, path);
  }
});

test('README stays within 150 lines', () => {
  assert.ok(read('README.md').text.split('\n').length <= 151);
});
