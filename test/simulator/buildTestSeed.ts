const SECTOR = 2048;

/** The smallest NoCloud image that the simulator's reader accepts: Rock Ridge names, no Joliet, no path table. */
export function buildTestSeed(userData: string, label = 'cidata'): Buffer {
  const files = [
    { name: 'meta-data', data: Buffer.from('instance-id: test\n') },
    { name: 'user-data', data: Buffer.from(userData) },
  ];
  const image = Buffer.alloc((19 + files.length) * SECTOR);
  image.write('\u0001CD001\u0001', 16 * SECTOR, 'latin1');
  image.write(label.padEnd(32), 16 * SECTOR + 40, 'latin1');
  record('\0', 18, SECTOR, true).copy(image, 16 * SECTOR + 156);
  image.write('\u00ffCD001\u0001', 17 * SECTOR, 'latin1');
  let at = 18 * SECTOR;
  for (const [index, { name, data }] of files.entries()) {
    const sector = 19 + index;
    data.copy(image, sector * SECTOR);
    const entry = record(name, sector, data.length, false);
    entry.copy(image, at);
    at += entry.length;
  }
  return image;
}

/** A directory record whose real name stands in a Rock Ridge `NM` entry. */
function record(name: string, sector: number, size: number, isDirectory: boolean): Buffer {
  const identifier = isDirectory ? '\0' : `${name.toUpperCase().replace('-', '_')}.;1`;
  const padding = identifier.length % 2 === 0 ? 1 : 0;
  const nameEntry = isDirectory
    ? Buffer.alloc(0)
    : Buffer.concat([Buffer.from('NM'), Buffer.from([5 + name.length, 1, 0]), Buffer.from(name)]);
  const length = 33 + identifier.length + padding + nameEntry.length;
  const bytes = Buffer.alloc(length + (length % 2));
  bytes[0] = bytes.length;
  bytes.writeUInt32LE(sector, 2);
  bytes.writeUInt32LE(size, 10);
  bytes[25] = isDirectory ? 2 : 0;
  bytes[32] = identifier.length;
  bytes.write(identifier, 33, 'latin1');
  nameEntry.copy(bytes, 33 + identifier.length + padding);
  return bytes;
}
