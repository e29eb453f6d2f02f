import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { buildIso } from '../../activities/seed/iso9660.ts';
import type { IsoFile } from '../../activities/seed/iso9660.ts';
import { readIsoStrictly } from '../support/isoReader.ts';
import type { IsoEntry } from '../support/isoReader.ts';

function file(name: string, content: string | Uint8Array): IsoFile {
  return { name, bytes: typeof content === 'string' ? Buffer.from(content) : content };
}

/** Names and contents, in the order of the names. */
function contents(entries: readonly (IsoFile | IsoEntry)[]): [string, string][] {
  return entries
    .map(({ name, bytes }): [string, string] => [name, Buffer.from(bytes).toString('base64')])
    .toSorted(([left], [right]) => (left < right ? -1 : 1));
}

const seed = [
  file('user-data', '#cloud-config\n'),
  file('meta-data', 'instance-id: a\n'),
  file('vendor-data', ''),
];

describe('an ISO image', () => {
  it('has the label and the very names of its files, in Joliet and in Rock Ridge', () => {
    const iso = readIsoStrictly(buildIso('cidata', seed));
    assert.equal(iso.label, 'cidata');
    assert.equal(iso.jolietLabel, 'cidata');
    assert.deepEqual(contents(iso.joliet), contents(seed));
    assert.deepEqual(contents(iso.rockRidge), contents(seed));
  });

  it('has 8.3 names for readers that know nothing else', () => {
    const { primary } = readIsoStrictly(buildIso('cidata', seed));
    assert.deepEqual(
      primary.map(({ name }) => name),
      ['META_DAT.;1', 'USER_DAT.;1', 'VENDOR_D.;1'],
    );
  });

  it('tells files apart whose 8.3 names would be one', () => {
    const files = ['user-data', 'user_data', 'user-data.bak'].map((name) => file(name, name));
    const { primary, rockRidge } = readIsoStrictly(buildIso('cidata', files));
    assert.deepEqual(
      primary.map(({ name }) => name),
      ['USER_DA1.;1', 'USER_DA2.;1', 'USER_DAT.;1'],
    );
    assert.deepEqual(contents(rockRidge), contents(files));
  });

  it('may be empty', () => {
    assert.deepEqual(readIsoStrictly(buildIso('empty', [])).joliet, []);
  });

  it('gives an empty file a place of its own', () => {
    const files = [file('a', ''), file('b', ''), file('c', 'x'), file('d', '')];
    const { rockRidge } = readIsoStrictly(buildIso('cidata', files));
    assert.equal(new Set(rockRidge.map(({ sector }) => sector)).size, files.length);
  });

  it('holds a file of 8 MiB', () => {
    const bytes = new Uint8Array(8 * 1024 ** 2);
    for (let index = 0; index < bytes.length; index += 1) bytes[index] = (index * 31) >>> 3;
    const { joliet } = readIsoStrictly(buildIso('cidata', [file('big', bytes), ...seed]));
    const big = joliet.find(({ name }) => name === 'big');
    assert.ok(big !== undefined && Buffer.compare(big.bytes, bytes) === 0);
  });

  for (const length of [1, 2047, 2048, 2049, 4096]) {
    it(`keeps a file of ${length} bytes apart from its neighbour`, () => {
      const files = [file('a', new Uint8Array(length).fill(0xaa)), file('b', 'neighbour')];
      const { joliet } = readIsoStrictly(buildIso('cidata', files));
      assert.deepEqual(contents(joliet), contents(files));
    });
  }

  it('goes on in further sectors when one does not hold the directory', () => {
    const files = Array.from({ length: 200 }, (_, index) =>
      file(`file-with-a-rather-long-name-${index}`, `content ${index}`),
    );
    const { joliet, rockRidge } = readIsoStrictly(buildIso('cidata', files));
    assert.deepEqual(contents(joliet), contents(files));
    assert.deepEqual(contents(rockRidge), contents(files));
  });

  it('gives back any set of files under each spelling, without overlap, the same every time', () => {
    const files = fc.uniqueArray(
      fc.record({
        name: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/),
        bytes: fc.uint8Array({ maxLength: 5000 }),
      }),
      { maxLength: 12, selector: ({ name }) => name },
    );
    fc.assert(
      fc.property(files, (list) => {
        const image = buildIso('cidata', list);
        const iso = readIsoStrictly(image);
        assert.deepEqual(contents(iso.joliet), contents(list));
        assert.deepEqual(contents(iso.rockRidge), contents(list));
        assert.equal(new Set(iso.primary.map(({ name }) => name)).size, list.length);
        const extents = iso.primary.toSorted((left, right) => left.sector - right.sector);
        for (const [index, { sector, bytes }] of extents.entries()) {
          const next = extents[index + 1]?.sector ?? iso.volumeSectors;
          assert.ok(sector + Math.ceil(bytes.length / 2048) <= next);
        }
        assert.equal(Buffer.compare(buildIso('cidata', list), image), 0);
      }),
    );
  });

  it('is not made with names that one of the spellings cannot hold', () => {
    const refused = ['', '.hidden', 'a/b', 'a b', 'über', 'x'.repeat(61), 'a;1', 'a\n'];
    for (const name of refused) {
      assert.throws(() => buildIso('cidata', [file(name, '')]), RangeError, JSON.stringify(name));
    }
    assert.throws(
      () => buildIso('cidata', [file('a', ''), file('a', '')]),
      /two files of one name/,
    );
  });

  it('is not made with a label that one of the spellings cannot hold', () => {
    for (const label of ['', 'x'.repeat(17), 'ci data', 'größe']) {
      assert.throws(() => buildIso(label, []), RangeError, label);
    }
  });
});
