import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scenes } from '../../deploy/dev/screenshotScenes.ts';
import { assertSameNames, checkout, pages, proseOf, resolveLink } from '../support/pages.ts';

const folder = 'docs/images';
const maxBytes = 200_000;
const images = pages.flatMap((page) =>
  [...proseOf(page).matchAll(/!\[([^\]]*)\]\(([^)\s]+)\)/g)].map(([, alt = '', target = '']) => ({
    page: page.path,
    alt,
    path: resolveLink(page, target),
  })),
);
const files = readdirSync(join(checkout, folder)).map((name) => `${folder}/${name}`);

test('every picture is one that npm run screenshots makes, and is shown on a page', () => {
  assertSameNames(
    files,
    scenes.map(({ file }) => `${folder}/${file}`),
  );
  assertSameNames(
    images.map(({ path }) => path),
    files,
  );
});

test('a page says in words what its picture shows', () => {
  for (const { page, alt } of images) assert.ok(alt.length > 40, `${page}: ${alt}`);
});

test('every picture is a PNG of less than 200 kB', () => {
  for (const file of files) {
    const bytes = readFileSync(join(checkout, file));
    assert.equal(bytes.subarray(1, 4).toString('latin1'), 'PNG', file);
    assert.ok(bytes.length < maxBytes, `${file} has ${bytes.length} bytes`);
  }
});
