import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { stages } from '../../deploy/dev/stages.ts';
import { assertSameNames, groupsIn, pages, read, rowsOf, sectionOf, source } from '../support/pages.ts'; // prettier-ignore

const scripts = Object.keys(
  z.object({ scripts: z.record(z.string(), z.string()) }).parse(JSON.parse(source('package.json')))
    .scripts,
);
const makefile = source('Makefile');
const targets = groupsIn([makefile], /^([a-z][a-z-]*):/gm);
/** Targets that `make help` shows. */
const shownTargets = groupsIn([makefile], /^([a-z][a-z-]*):[^#\n]*## /gm);
const texts = pages.map(({ text }) => text);
const commandTable = rowsOf(sectionOf(read('README.md'), '## Commands')).map(
  ([command = '']) => command,
);

/** `test:<level>` stands for a script of each level. */
function isScript(name: string): boolean {
  if (scripts.includes(name)) return true;
  const [start = ''] = name.split('<');
  return name.endsWith('>') && scripts.some((script) => script.startsWith(start));
}

test('every npm script that a page names exists', () => {
  const named = groupsIn(texts, /npm run (?:--silent )?([a-z][\w:<>-]*)/g);
  assert.ok(named.length > 5);
  assert.deepEqual(
    named.filter((name) => !isScript(name)),
    [],
  );
});

test('every target of the Makefile that a page names exists', () => {
  const code = texts.flatMap((text) => text.match(/`[^`\n]+`|^```sh\n[\s\S]*?^```$/gm) ?? []);
  const named = groupsIn(code, /(?:^|[`\n])make ([a-z][a-z-]*)/g);
  assert.ok(named.length > 5);
  assert.deepEqual(
    named.filter((name) => !targets.includes(name)),
    [],
  );
});

test("README's table of commands has every target that make help shows", () => {
  const named = groupsIn(commandTable, /make ([a-z-]+)/g);
  assertSameNames(named, shownTargets);
});

test("README's table of commands has every npm script that no target of the Makefile stands for", () => {
  const stoodFor = new Set([...shownTargets, 'ci', 'dev', 'fmt:check']);
  const named = groupsIn(commandTable, /npm run ([\w:<>-]+)/g);
  const [levels, others] = [named.filter((name) => name.includes('<')), named.filter((name) => !name.includes('<'))]; // prettier-ignore
  assert.deepEqual(levels, ['test:<level>']);
  assertSameNames(
    others,
    scripts.filter((name) => !stoodFor.has(name) && !name.startsWith('test:')),
  );
});

test('testing.md lists the stages of make test in their order', () => {
  const [line = ''] = /^`check` \(types\)[^.]*\./m.exec(read('docs/testing.md').text) ?? [];
  assert.deepEqual(
    groupsIn([line], /`([^`]+)`/g),
    stages.map(({ name }) => name),
  );
});

test('CONTRIBUTING lists every level of tests with its command', () => {
  const rows = rowsOf(sectionOf(read('CONTRIBUTING.md'), '## Tests'));
  const levels = stages.filter(({ kind }) => kind === 'tests').map(({ name }) => name);
  assertSameNames(
    rows.map(([level = '', , command = '']) => `${level} ${command}`),
    levels.map((level) => `${level} \`npm run test:${level}\``),
  );
});
