/** The Markdown pages of this repository, read for the tests in test/docs. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root of the checkout. */
export const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

export interface Page {
  /** Relative to the checkout. */
  path: string;
  text: string;
}

/** A fenced block: its language (empty when none is named) and what is in it. */
export interface Fence {
  language: string;
  text: string;
}

/** Folders that hold no page of ours. */
const skipped = new Set(['node_modules', '.git', '.local', '.cache', 'testdata']);

/** Paths of all files of the checkout, relative to it; what is installed, generated at run time or captured is left out. */
export function filesOf(folder: string = checkout): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (skipped.has(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesOf(path) : [relative(checkout, path)];
  });
}

/** Every Markdown file of the checkout. */
export const pages: readonly Page[] = filesOf()
  .filter((path) => path.endsWith('.md'))
  .sort()
  .map(read);

/** A file of the checkout as text. */
export function source(path: string): string {
  return readFileSync(join(checkout, path), 'utf8');
}

/** One page. Throws when it is not there. */
export function read(path: string): Page {
  return { path, text: source(path) };
}

/** Whether the checkout has that file or folder. */
export function exists(path: string): boolean {
  return existsSync(join(checkout, path));
}

/** A relative link as seen from the page it is on, relative to the checkout. */
export function resolveLink(page: Page, link: string): string {
  return relative(checkout, join(checkout, dirname(page.path), link));
}

const fence = /^```([a-z]*)\n([\s\S]*?)^```$/gm;

export function fencesOf(page: Page): Fence[] {
  return [...page.text.matchAll(fence)].map(([, language = '', text = '']) => ({ language, text }));
}

/** The page without its fenced blocks. */
export function proseOf(page: Page): string {
  return page.text.replaceAll(fence, '');
}

/** What stands between single backticks outside of fences. */
export function codeOf(page: Page): string[] {
  return [...proseOf(page).matchAll(/(?<!`)`([^`\n]+)`(?!`)/g)].map(([, code = '']) => code);
}

/** Text of all headings of a level (2 for `##`), in order. */
export function headingsOf(page: Page, level: number): string[] {
  const pattern = new RegExp(`^#{${level}} (.+)$`, 'gm');
  return [...proseOf(page).matchAll(pattern)].map(([, title = '']) => title.trim());
}

/** Names by which a link reaches the headings of a page, as GitHub makes them. */
export function anchorsOf(page: Page): string[] {
  return [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** The part of a page below a heading, up to the next heading of its level or above. Throws when it is not there. */
export function sectionOf(page: Page, heading: string): string {
  const [marks = ''] = /^#+/.exec(heading) ?? [];
  const start = `\n${page.text}`.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`${page.path} has no heading «${heading}»`);
  const body = page.text.slice(start + heading.length);
  const end = body.search(new RegExp(`^#{1,${marks.length}} `, 'm'));
  return end < 0 ? body : body.slice(0, end);
}

/** The tables in a text, each as it stands. */
export function tablesOf(text: string): string[] {
  return text.match(/(^\|.*\n?)+/gm) ?? [];
}

/** Rows of all tables in a text, without heads and rules; cells are trimmed. */
export function rowsOf(text: string): string[][] {
  return tablesOf(text).flatMap((table) => table.trimEnd().split('\n').slice(2).map(cellsOf));
}

function cellsOf(row: string): string[] {
  return row
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split('|')
    .map((cell) => cell.trim());
}

/** Names between backticks in the given column of all tables of a text. */
export function namesOf(text: string, column = 0): string[] {
  return rowsOf(text).flatMap((cells) =>
    [...(cells[column] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  );
}

/** All first groups of a pattern in these texts. */
export function groupsIn(texts: readonly string[], pattern: RegExp): string[] {
  return texts.flatMap((text) => [...text.matchAll(pattern)].map(([, name = '']) => name));
}

/** Fails with both what pages lack and what they have too much. Doubles on the code's side count once. */
export function assertSameNames(documented: readonly string[], real: readonly string[]): void {
  assert.deepEqual([...documented].sort(), [...new Set(real)].sort());
}
