/**
 * Writes a small ISO 9660 image with one directory, byte for byte the same for the same input. The names are kept
 * three times: as 8.3 names of ECMA-119, as Joliet names and as Rock Ridge names, so that whatever mounts the seed
 * finds `user-data` under that very name.
 */
import { ascii, both16, both32, padded, paddedUcs2, ucs2 } from './isoFields.ts';
import { extensionReference, nameField, posixField, rootSystemUse } from './rockRidge.ts';

export interface IsoFile {
  name: string;
  bytes: Uint8Array;
}

const sectorSize = 2048;
/** Sectors 0 to 15 belong to the system and stay zero; the descriptors start at 16 (ECMA-119 6.2.1). */
const pvdSector = 16;
const jolietSector = 17;
const terminatorSector = 18;
const pathTableSectors = { primaryL: 19, primaryM: 20, jolietL: 21, jolietM: 22 };
const rootSector = 23;
const pathTableSize = 10;

/** Where a file's data lies: `sector` and length. */
interface Extent {
  sector: number;
  length: number;
}

/** One file with all its spellings. */
interface Entry extends Extent {
  name: string;
  shortName: string;
  bytes: Uint8Array;
}

/** A fixed moment, 1 January 2000 UTC: a clock in here would make every image another one. */
const recordDate = Uint8Array.from([100, 1, 1, 0, 0, 0, 0]);
const volumeDate = Buffer.concat([ascii('2000010100000000'), Uint8Array.from([0])]);
/** Sixteen digits 0 and a zero byte mean «not specified» (ECMA-119 8.4.26.1). */
const noDate = Buffer.concat([ascii('0'.repeat(16)), Uint8Array.from([0])]);

/** Directory record of an even length (ECMA-119 9.1); `identifier` is the encoded name, `systemUse` the Rock Ridge fields. */
function directoryRecord(
  identifier: Uint8Array,
  extent: Extent,
  isDirectory: boolean,
  systemUse: Uint8Array = new Uint8Array(),
): Uint8Array {
  const padding = identifier.length % 2 === 0 ? 1 : 0;
  const tail = systemUse.length % 2;
  const length = 33 + identifier.length + padding + systemUse.length + tail;
  return Buffer.concat([
    Uint8Array.from([length, 0]),
    both32(extent.sector),
    both32(extent.length),
    recordDate,
    Uint8Array.from([isDirectory ? 2 : 0, 0, 0]),
    both16(1),
    Uint8Array.from([identifier.length]),
    identifier,
    new Uint8Array(padding),
    systemUse,
    new Uint8Array(tail),
  ]);
}

/** Records one after another; none crosses a sector's end (ECMA-119 6.8.1.1). */
function packDirectory(records: readonly Uint8Array[]): Uint8Array {
  const sectors: Buffer[] = [];
  let used = sectorSize;
  for (const record of records) {
    if (used + record.length > sectorSize) {
      sectors.push(Buffer.alloc(sectorSize));
      used = 0;
    }
    sectors.at(-1)?.set(record, used);
    used += record.length;
  }
  return Buffer.concat(sectors);
}

const selfName = Uint8Array.from([0]);
const parentName = Uint8Array.from([1]);

function byText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

function primaryDirectory(entries: readonly Entry[], root: Extent, erSector: number): Uint8Array {
  const files = entries
    .toSorted((left, right) => byText(left.shortName, right.shortName))
    .map((entry) => {
      const systemUse = Buffer.concat([posixField(false), nameField(entry.name)]);
      return directoryRecord(ascii(entry.shortName), entry, false, systemUse);
    });
  return packDirectory([
    directoryRecord(selfName, root, true, rootSystemUse(erSector)),
    directoryRecord(parentName, root, true, posixField(true)),
    ...files,
  ]);
}

function jolietDirectory(entries: readonly Entry[], root: Extent): Uint8Array {
  const files = entries
    .toSorted((left, right) => byText(left.name, right.name))
    .map((entry) => directoryRecord(ucs2(entry.name), entry, false));
  return packDirectory([
    directoryRecord(selfName, root, true),
    directoryRecord(parentName, root, true),
    ...files,
  ]);
}

/** The path table's only record, the root (ECMA-119 9.4). */
function pathTable(root: Extent, order: 'little' | 'big'): Uint8Array {
  const table = Buffer.alloc(pathTableSize);
  table.writeUInt8(1, 0);
  if (order === 'little') {
    table.writeUInt32LE(root.sector, 2);
    table.writeUInt16LE(1, 6);
  } else {
    table.writeUInt32BE(root.sector, 2);
    table.writeUInt16BE(1, 6);
  }
  return table;
}

/** What differs between the primary descriptor (ECMA-119 8.4) and Joliet's supplementary one (8.5). */
interface Volume {
  type: 1 | 2;
  /** Announces UCS-2 level 3 (`%/E`) for Joliet; zeros for the primary. */
  escapes: Uint8Array;
  text: (text: string, width: number) => Uint8Array;
  pathTables: { little: number; big: number };
  root: Extent;
}

function volumeDescriptor(volume: Volume, label: string, totalSectors: number): Uint8Array {
  const { text } = volume;
  const escapes = Buffer.alloc(32);
  escapes.set(volume.escapes);
  const little = Buffer.alloc(8);
  little.writeUInt32LE(volume.pathTables.little);
  const big = Buffer.alloc(8);
  big.writeUInt32BE(volume.pathTables.big);
  return Buffer.concat([
    Uint8Array.from([volume.type]),
    ascii('CD001'),
    Uint8Array.from([1, 0]),
    text('', 32),
    text(label, 32),
    new Uint8Array(8),
    both32(totalSectors),
    escapes,
    both16(1),
    both16(1),
    both16(sectorSize),
    both32(pathTableSize),
    little,
    big,
    directoryRecord(selfName, volume.root, true),
    text('', 128),
    text('', 128),
    text('', 128),
    text('EGRESS_PROXIES_OPERATOR', 128),
    text('', 37),
    text('', 37),
    text('', 37),
    volumeDate,
    volumeDate,
    noDate,
    noDate,
    Uint8Array.from([1, 0]),
  ]);
}

const terminator = Buffer.concat([Uint8Array.from([255]), ascii('CD001'), Uint8Array.from([1])]);

/** A name of at most eight d-characters, `USER_DAT.;1`, unlike those in `taken` (ECMA-119 7.5, level 1). */
function shortNameOf(name: string, taken: ReadonlySet<string>): string {
  const plain = name.toUpperCase().replaceAll(/[^A-Z0-9_]/g, '_');
  for (let number = 0; ; number += 1) {
    const suffix = number === 0 ? '' : String(number);
    const candidate = `${plain.slice(0, 8 - suffix.length)}${suffix}.;1`;
    if (!taken.has(candidate)) return candidate;
  }
}

/** One sector even for nothing: some readers take an extent for a file's identity, so an empty file gets its own. */
function fileSectors(length: number): number {
  return Math.max(1, Math.ceil(length / sectorSize));
}

function place(files: readonly IsoFile[], firstSector: number): Entry[] {
  const taken = new Set<string>();
  let sector = firstSector;
  return files.map(({ name, bytes }) => {
    const shortName = shortNameOf(name, taken);
    taken.add(shortName);
    const entry = { name, shortName, bytes, sector, length: bytes.length };
    sector += fileSectors(bytes.length);
    return entry;
  });
}

/** Directories, then the sector of the ER field, then the files: libarchive wants to read forward only. */
function layOut(files: readonly IsoFile[]) {
  // The size of a directory does not depend on where the files lie: measured first, placed second.
  const draft = place(files, 0);
  const nowhere = { sector: 0, length: 0 };
  const root = { sector: rootSector, length: primaryDirectory(draft, nowhere, 0).length };
  const jolietRoot = {
    sector: root.sector + root.length / sectorSize,
    length: jolietDirectory(draft, nowhere).length,
  };
  const erSector = jolietRoot.sector + jolietRoot.length / sectorSize;
  const entries = place(files, erSector + 1);
  const totalSectors = files.reduce(
    (sum, { bytes }) => sum + fileSectors(bytes.length),
    erSector + 1,
  );
  return { root, jolietRoot, erSector, entries, totalSectors };
}

function checkNames(label: string, files: readonly IsoFile[]): void {
  if (!/^[A-Za-z0-9_-]{1,16}$/.test(label)) {
    throw new RangeError(`volume label "${label}" is not 1 to 16 letters, digits, _ or -`);
  }
  const names = files.map(({ name }) => name);
  const bad = names.find((name) => !/^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/.test(name));
  if (bad !== undefined) {
    throw new RangeError(`file name "${bad}" is not 1 to 60 letters, digits, dots, _ or -`);
  }
  if (new Set(names).size !== names.length) {
    throw new RangeError(`two files of one name among ${names.join(', ')}`);
  }
}

/**
 * The image of a volume with these files in its root. Same input, same bytes.
 * Throws RangeError on a label or file name that not all three spellings can hold.
 */
export function buildIso(label: string, files: readonly IsoFile[]): Uint8Array {
  checkNames(label, files);
  const { root, jolietRoot, erSector, entries, totalSectors } = layOut(files);
  const { primaryL, primaryM, jolietL, jolietM } = pathTableSectors;
  const primary: Volume = {
    type: 1,
    escapes: new Uint8Array(),
    text: padded,
    pathTables: { little: primaryL, big: primaryM },
    root,
  };
  const joliet: Volume = {
    type: 2,
    escapes: ascii('%/E'),
    text: paddedUcs2,
    pathTables: { little: jolietL, big: jolietM },
    root: jolietRoot,
  };

  const image = new Uint8Array(totalSectors * sectorSize);
  const put = (sector: number, bytes: Uint8Array) => image.set(bytes, sector * sectorSize);
  put(pvdSector, volumeDescriptor(primary, label, totalSectors));
  put(jolietSector, volumeDescriptor(joliet, label, totalSectors));
  put(terminatorSector, terminator);
  put(primaryL, pathTable(root, 'little'));
  put(primaryM, pathTable(root, 'big'));
  put(jolietL, pathTable(jolietRoot, 'little'));
  put(jolietM, pathTable(jolietRoot, 'big'));
  put(root.sector, primaryDirectory(entries, root, erSector));
  put(jolietRoot.sector, jolietDirectory(entries, jolietRoot));
  put(erSector, extensionReference());
  for (const entry of entries) put(entry.sector, entry.bytes);
  return image;
}
