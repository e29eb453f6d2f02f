/**
 * A strict reader of small ISO 9660 images, written from ECMA-119, the Joliet specification and SUSP/RRIP, for
 * tests only: it shares no code with the writer and checks every number that is stored more than once.
 */
import assert from 'node:assert/strict';

const sectorSize = 2048;

export interface IsoEntry {
  name: string;
  bytes: Buffer;
  sector: number;
}
export interface IsoContent {
  label: string;
  jolietLabel: string;
  volumeSectors: number;
  /** The same files under each of their spellings, in the order of the directory. */
  primary: IsoEntry[];
  joliet: IsoEntry[];
  rockRidge: IsoEntry[];
}

interface DirectoryRecord {
  identifier: Buffer;
  sector: number;
  length: number;
  isDirectory: boolean;
  systemUse: Buffer;
}

function both16(image: Buffer, offset: number): number {
  const value = image.readUInt16LE(offset);
  assert.equal(image.readUInt16BE(offset + 2), value, `16-bit number at ${offset}`);
  return value;
}

function both32(image: Buffer, offset: number): number {
  const value = image.readUInt32LE(offset);
  assert.equal(image.readUInt32BE(offset + 4), value, `32-bit number at ${offset}`);
  return value;
}

function sectorOf(image: Buffer, sector: number): Buffer {
  assert.ok((sector + 1) * sectorSize <= image.length, `sector ${sector} is past the end`);
  return image.subarray(sector * sectorSize, (sector + 1) * sectorSize);
}

/** ECMA-119 9.1. */
function readRecord(record: Buffer): DirectoryRecord {
  const identifierLength = record.readUInt8(32);
  const identifierEnd = 33 + identifierLength;
  const padding = identifierLength % 2 === 0 ? 1 : 0;
  assert.equal(record.readUInt8(0), record.length);
  assert.equal(record.length % 2, 0, 'a record has an even length');
  assert.equal(record.readUInt8(1), 0, 'no extended attributes');
  assert.equal(both16(record, 28), 1, 'volume sequence number');
  const flags = record.readUInt8(25);
  assert.equal(flags & ~2, 0, 'no flags but that of a directory');
  const [month, day] = [record.readUInt8(19), record.readUInt8(20)];
  assert.ok(month >= 1 && month <= 12 && day >= 1 && day <= 31, 'a date that exists');
  return {
    identifier: record.subarray(33, identifierEnd),
    sector: both32(record, 2),
    length: both32(record, 10),
    isDirectory: flags === 2,
    systemUse: record.subarray(identifierEnd + padding),
  };
}

/** ECMA-119 6.8: records fill sectors, and a zero length ends a sector. */
function readDirectory(image: Buffer, sector: number, length: number): DirectoryRecord[] {
  assert.ok(length > 0 && length % sectorSize === 0, 'a directory has whole sectors');
  const records: DirectoryRecord[] = [];
  for (let index = 0; index < length / sectorSize; index += 1) {
    const bytes = sectorOf(image, sector + index);
    let offset = 0;
    while (offset < sectorSize && bytes.readUInt8(offset) !== 0) {
      const end = offset + bytes.readUInt8(offset);
      assert.ok(end <= sectorSize, 'no record crosses the end of a sector');
      records.push(readRecord(bytes.subarray(offset, end)));
      offset = end;
    }
    assert.ok(offset > 0, 'no empty sector in a directory');
    assert.ok(
      bytes.subarray(offset).every((byte) => byte === 0),
      'zeros behind the last record',
    );
  }
  return records;
}

/** System Use fields by signature; a CE field continues elsewhere (SUSP 5.1). */
function systemUseFields(image: Buffer, area: Buffer): Map<string, Buffer> {
  const fields = new Map<string, Buffer>();
  let offset = 0;
  while (offset + 4 <= area.length) {
    const length = area.readUInt8(offset + 2);
    assert.ok(length >= 4 && offset + length <= area.length, 'a System Use field fits');
    assert.equal(area.readUInt8(offset + 3), 1, 'version of a System Use field');
    const signature = area.toString('latin1', offset, offset + 2);
    const payload = area.subarray(offset + 4, offset + length);
    assert.ok(!fields.has(signature), `one ${signature} field`);
    fields.set(signature, payload);
    if (signature === 'CE') {
      const start = both32(payload, 8);
      const size = both32(payload, 16);
      assert.ok(start + size <= sectorSize, 'a continuation stays in its sector');
      const more = sectorOf(image, both32(payload, 0)).subarray(start, start + size);
      for (const [key, value] of systemUseFields(image, more)) fields.set(key, value);
    }
    offset += length;
  }
  return fields;
}

function modeOf(fields: Map<string, Buffer>): number {
  const posix = fields.get('PX');
  assert.ok(posix !== undefined && posix.length === 32, 'a PX field of 36 bytes');
  assert.equal(both32(posix, 16), 0, 'owner root');
  assert.equal(both32(posix, 24), 0, 'group root');
  assert.ok(both32(posix, 8) >= 1, 'links');
  return both32(posix, 0);
}

/** The root's own record announces Rock Ridge: SP first, ER somewhere. */
function checkRockRidgeRoot(image: Buffer, self: DirectoryRecord): void {
  assert.equal(self.systemUse.toString('latin1', 0, 2), 'SP', 'SP comes first');
  const fields = systemUseFields(image, self.systemUse);
  assert.deepEqual(fields.get('SP'), Buffer.from([0xbe, 0xef, 0]));
  assert.equal(modeOf(fields) & 0o170000, 0o040000, 'the root is a directory');
  const reference = fields.get('ER');
  assert.ok(reference !== undefined, 'an ER field');
  const [id, description, source] = [
    reference.readUInt8(0),
    reference.readUInt8(1),
    reference.readUInt8(2),
  ];
  assert.equal(reference.length, 4 + id + description + source, 'lengths in the ER field');
  assert.equal(reference.toString('latin1', 4, 4 + id), 'RRIP_1991A');
}

function rockRidgeName(image: Buffer, record: DirectoryRecord): string {
  const fields = systemUseFields(image, record.systemUse);
  assert.equal(modeOf(fields) & 0o170000, 0o100000, 'a regular file');
  const name = fields.get('NM');
  assert.ok(name !== undefined && name.readUInt8(0) === 0, 'a complete NM field');
  return name.toString('latin1', 1);
}

/** Path tables of both byte orders name the root and nothing else (ECMA-119 9.4). */
function checkPathTables(image: Buffer, descriptor: Buffer, rootSector: number): void {
  assert.equal(both32(descriptor, 132), 10, 'path table size');
  const little = sectorOf(image, descriptor.readUInt32LE(140));
  const big = sectorOf(image, descriptor.readUInt32BE(148));
  assert.equal(descriptor.readUInt32LE(144), 0, 'no second table');
  assert.equal(descriptor.readUInt32BE(152), 0, 'no second table');
  for (const table of [little, big]) {
    assert.deepEqual([table[0], table[1], table[8], table[9]], [1, 0, 0, 0]);
    assert.ok(table.subarray(10).every((byte) => byte === 0));
  }
  assert.equal(little.readUInt32LE(2), rootSector);
  assert.equal(big.readUInt32BE(2), rootSector);
  assert.equal(little.readUInt16LE(6), 1, 'the root is its own parent');
  assert.equal(big.readUInt16BE(6), 1, 'the root is its own parent');
}

function readRoot(image: Buffer, descriptor: Buffer): DirectoryRecord[] {
  const root = readRecord(descriptor.subarray(156, 190));
  assert.ok(root.isDirectory);
  checkPathTables(image, descriptor, root.sector);
  const [self, parent, ...files] = readDirectory(image, root.sector, root.length);
  for (const [link, identifier] of [
    [self, 0],
    [parent, 1],
  ] as const) {
    assert.ok(link !== undefined && link.isDirectory);
    assert.deepEqual(link.identifier, Buffer.from([identifier]));
    assert.deepEqual([link.sector, link.length], [root.sector, root.length]);
  }
  const sorted = files.toSorted((left, right) => Buffer.compare(left.identifier, right.identifier));
  assert.deepEqual(files, sorted, 'a directory is sorted by identifier');
  assert.ok(self !== undefined);
  return [self, ...files];
}

function utf16be(bytes: Buffer): string {
  return Buffer.from(bytes).swap16().toString('utf16le');
}

/** Reads an image and checks it on the way; throws AssertionError where it breaks a rule. */
export function readIsoStrictly(bytes: Uint8Array): IsoContent {
  const image = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  assert.equal(image.length % sectorSize, 0, 'whole sectors');
  assert.ok(
    image.subarray(0, 16 * sectorSize).every((byte) => byte === 0),
    'empty system area',
  );
  const [primary, joliet, end] = [16, 17, 18].map((sector) => sectorOf(image, sector));
  assert.ok(primary !== undefined && joliet !== undefined && end !== undefined);
  for (const [descriptor, type] of [
    [primary, 1],
    [joliet, 2],
    [end, 255],
  ] as const) {
    assert.equal(descriptor.readUInt8(0), type, 'type of a volume descriptor');
    assert.equal(descriptor.toString('latin1', 1, 6), 'CD001');
    assert.equal(descriptor.readUInt8(6), 1, 'version of a volume descriptor');
  }
  for (const descriptor of [primary, joliet]) {
    assert.equal(both32(descriptor, 80), image.length / sectorSize, 'size of the volume');
    assert.deepEqual([both16(descriptor, 120), both16(descriptor, 124)], [1, 1], 'volume set');
    assert.equal(both16(descriptor, 128), sectorSize);
    assert.equal(descriptor.readUInt8(881), 1, 'file structure version');
    assert.match(descriptor.toString('latin1', 813, 829), /^[0-9]{16}$/, 'creation date');
  }
  assert.equal(joliet.toString('latin1', 88, 91), '%/E', 'UCS-2 level 3');
  assert.ok(primary.subarray(88, 120).every((byte) => byte === 0));

  const fileOf = (record: DirectoryRecord, name: string): IsoEntry => {
    assert.ok(!record.isDirectory, `${name} is a file`);
    const start = record.sector * sectorSize;
    assert.ok(start + record.length <= image.length, `${name} lies inside the volume`);
    return { name, sector: record.sector, bytes: image.subarray(start, start + record.length) };
  };
  const [self, ...records] = readRoot(image, primary);
  assert.ok(self !== undefined);
  checkRockRidgeRoot(image, self);
  const [, ...jolietRecords] = readRoot(image, joliet);
  return {
    label: primary.toString('latin1', 40, 72).trimEnd(),
    jolietLabel: utf16be(joliet.subarray(40, 72)).trimEnd(),
    volumeSectors: image.length / sectorSize,
    primary: records.map((record) => fileOf(record, record.identifier.toString('latin1'))),
    rockRidge: records.map((record) => fileOf(record, rockRidgeName(image, record))),
    joliet: jolietRecords.map((record) => fileOf(record, utf16be(record.identifier))),
  };
}
