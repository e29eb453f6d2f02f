/**
 * A minimal reader of ISO 9660 images (ECMA-119, with Joliet and Rock Ridge names): enough to find what cloud-init
 * would find on a NoCloud seed. It shares nothing with the code that writes seeds.
 */
export interface IsoImage {
  volumeLabel: string;
  /** Files of the root directory by name, in lower case and without version suffix. */
  files: ReadonlyMap<string, Buffer>;
}

const SECTOR = 2048;

/** `null` when the bytes are no ISO 9660 image. */
export function readIso(image: Buffer): IsoImage | null {
  let label: string | null = null;
  let primary: Map<string, Buffer> | null = null;
  let joliet: Map<string, Buffer> | null = null;
  for (let sector = 16; (sector + 1) * SECTOR <= image.length; sector += 1) {
    const descriptor = image.subarray(sector * SECTOR, (sector + 1) * SECTOR);
    if (descriptor.toString('latin1', 1, 6) !== 'CD001') break;
    const type = descriptor[0];
    if (type === 255) break;
    if (type === 1) {
      label = descriptor.toString('latin1', 40, 72).trim();
      primary = readDirectory(image, descriptor.subarray(156, 190), false);
    }
    const isJoliet = /^%\/[@CE]/.test(descriptor.toString('latin1', 88, 91));
    if (type === 2 && isJoliet) joliet = readDirectory(image, descriptor.subarray(156, 190), true);
  }
  if (label === null || primary === null) return null;
  return { volumeLabel: label, files: new Map([...primary, ...(joliet ?? [])]) };
}

function readDirectory(image: Buffer, root: Buffer, wide: boolean): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const start = root.readUInt32LE(2) * SECTOR;
  const end = Math.min(start + root.readUInt32LE(10), image.length);
  for (let at = start; at < end;) {
    const length = image[at] ?? 0;
    if (length === 0) {
      // Records never cross a sector; the rest of this one is padding.
      at = (Math.floor(at / SECTOR) + 1) * SECTOR;
      continue;
    }
    const record = image.subarray(at, at + length);
    at += length;
    const isDirectory = ((record[25] ?? 0) & 2) !== 0;
    if (isDirectory) continue;
    const extent = record.readUInt32LE(2) * SECTOR;
    const data = image.subarray(extent, extent + record.readUInt32LE(10));
    files.set(fileName(record, wide), data);
  }
  return files;
}

function fileName(record: Buffer, wide: boolean): string {
  const length = record[32] ?? 0;
  const raw = record.subarray(33, 33 + length);
  if (wide) return Buffer.from(raw).swap16().toString('utf16le').replace(/;\d+$/, '').toLowerCase();
  const rockRidge = rockRidgeName(record.subarray(33 + length + (length % 2 === 0 ? 1 : 0)));
  const name = rockRidge ?? raw.toString('latin1').replace(/\.?;\d+$/, '');
  return name.toLowerCase();
}

/** The `NM` entry of the system use area (Rock Ridge). */
function rockRidgeName(systemUse: Buffer): string | null {
  for (let at = 0; at + 4 <= systemUse.length;) {
    const length = systemUse[at + 2] ?? 0;
    if (length < 4) return null;
    if (systemUse.toString('latin1', at, at + 2) === 'NM') {
      return systemUse.toString('utf8', at + 5, at + length);
    }
    at += length;
  }
  return null;
}

/** What a guest makes of a seed: its proxy settings, or `null` when cloud-init would not accept it. */
export interface SeedContent {
  userData: string;
  metaData: string;
  proxyPort: number;
  /** `user:password` when the guest's proxy asks for credentials. */
  proxyAuth: string | null;
}

/**
 * Reads a NoCloud seed. Of the user-data only three hints are looked at: a comment `# simulator: port=3128`
 * or `# simulator: auth=user:pass`, and a line `port: 3128` / `http_port 3128` as a proxy's own configuration has it.
 */
export function readSeed(image: Buffer): SeedContent | null {
  const iso = readIso(image);
  if (iso === null || iso.volumeLabel.toLowerCase() !== 'cidata') return null;
  const userData = textFile(iso, ['user-data', 'user_data', 'userdata']);
  const metaData = textFile(iso, ['meta-data', 'meta_data', 'metadata']);
  if (userData === null || metaData === null) return null;
  const hint = /^\s*#\s*simulator:.*\bport=(\d+)/m.exec(userData)?.[1];
  const own = /^\s*(?:port:|http_port)\s+(?:\S*:)?(\d+)/m.exec(userData)?.[1];
  const auth = /^\s*#\s*simulator:.*\bauth=(\S+:\S+)/m.exec(userData)?.[1];
  return { userData, metaData, proxyPort: Number(hint ?? own ?? 3128), proxyAuth: auth ?? null };
}

function textFile(iso: IsoImage, names: readonly string[]): string | null {
  for (const name of names) {
    const data = iso.files.get(name);
    if (data !== undefined) return data.toString('utf8');
  }
  return null;
}
