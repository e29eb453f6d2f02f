import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { placeOf, testsOf, uncovered } from '../contract/report.ts';
import { sections } from '../contract/sections.ts';
import { testsNamed, titlesOf } from '../contract/titles.ts';
import { exists } from '../support/pages.ts';

/** Lines of the page that the table was made from. */
const linesOfPage = 648;
const statements = sections.flatMap((section) => section.statements);
const refs = statements.flatMap(({ proof }) => testsOf(proof));

describe('the contract table', () => {
  it('has sections that cover the page from its first line to its last, without gap and overlap', () => {
    let next = 1;
    for (const { title, from, to } of sections) {
      assert.equal(from, next, title);
      assert.ok(to > from, title);
      next = to + 1;
    }
    assert.equal(next, linesOfPage + 1);
  });

  it('has no entry outside of its section', () => {
    for (const { title, from, to, statements: stated, quiet } of sections) {
      for (const entry of [...stated, ...quiet]) {
        const { line, to: last = line } = entry;
        assert.ok(line >= from && last >= line && last <= to, `${title}: ${placeOf(entry)}`);
      }
    }
  });

  it('speaks of every line but blank ones: never of two in a row not', () => {
    const spoken = new Set<number>();
    for (const { line, to = line } of sections.flatMap((one) => [...one.statements, ...one.quiet])) {
      for (let at = line; at <= to; at += 1) spoken.add(at);
    }
    const silent = Array.from({ length: linesOfPage }, (_, index) => index + 1).filter(
      (line) => !spoken.has(line),
    );
    assert.deepEqual(
      silent.filter((line) => silent.includes(line + 1)),
      [],
    );
  });

  it('states nothing twice', () => {
    const said = statements.map(({ statement }) => statement.toLowerCase());
    assert.deepEqual(
      said.filter((statement, index) => said.indexOf(statement) !== index),
      [],
    );
  });

  it('keeps the order of the page', () => {
    for (const { title, statements: stated } of sections) {
      const lines = stated.map(({ line }) => line);
      assert.deepEqual(lines, [...lines].sort((a, b) => a - b), title);
    }
  });

  it('names a test for whatever holds, and for whatever holds instead', () => {
    const bare = statements.filter(
      ({ proof }) =>
        (proof.kind === 'proven' || proof.kind === 'changed') && proof.tests.length === 0,
    );
    assert.deepEqual(bare, []);
  });

  // Every test file that is named is loaded, which takes a while on a busy machine.
  it('names no test that does not exist', { timeout: 180_000 }, async () => {
    const files = [...new Set(refs.map(({ file }) => file))].sort();
    assert.deepEqual(
      files.filter((file) => !exists(file)),
      [],
    );
    const titles = await titlesOf(files);
    const wrong = refs.flatMap(({ file, title }) => {
      const found = testsNamed(title, titles.get(file) ?? []);
      return found.length === 1 ? [] : [{ file, title, found: found.length }];
    });
    assert.deepEqual(wrong, []);
  });
});

describe('a title in the contract table', () => {
  const titles = ['a VM › is started', 'a VM › is stopped', 'a seed › is stopped', 'alone'];

  it('is that of a test, alone or with what it stands in', () => {
    assert.deepEqual(testsNamed('is started', titles), ['a VM › is started']);
    assert.deepEqual(testsNamed('a VM › is stopped', titles), ['a VM › is stopped']);
    assert.deepEqual(testsNamed('alone', titles), ['alone']);
  });

  it('is that of a describe, for all its tests', () => {
    assert.deepEqual(testsNamed('a VM', titles), ['a VM']);
  });

  it('is refused when there is none, or more than one', () => {
    assert.deepEqual(testsNamed('is paused', titles), []);
    assert.deepEqual(testsNamed('started', titles), []);
    assert.equal(testsNamed('is stopped', titles).length, 2);
  });
});

it('lines of the page that no entry speaks of are listed', () => {
  const section = { title: 'S', from: 1, to: 4, quiet: [{ line: 1, what: 'heading' }] };
  const spoken = { line: 3, statement: 'x', proof: { kind: 'nonGoal', why: 'y' } } as const;
  assert.deepEqual(uncovered('# S\n\nsaid\nnot said', [{ ...section, statements: [spoken] }]), [
    { line: 4, text: 'not said' },
  ]);
});
