import { dieWith } from './errors.ts';
import type { StorageFixture } from './fixture.ts';

/** One file or logical volume on a storage of one node, or on a shared storage. */
export interface Volume {
  storage: string;
  /** Part after the colon of the volid: `iso/seed.iso`, `101/vm-101-disk-0.qcow2`, `vm-101-disk-0`. */
  name: string;
  /** `null` on shared storages: every node sees it. */
  node: string | null;
  content: 'iso' | 'images' | 'vztmpl';
  format: 'iso' | 'qcow2' | 'raw';
  size: number;
  /** Bytes really occupied; what a copy moves. */
  used: number;
  /** Epoch seconds. */
  ctime: number;
  vmid: number | null;
  /** Name of the base volume of a linked clone. */
  base: string | null;
  bytes: Buffer | null;
  /** Cannot be removed (a busy device): a destroy only warns about it. */
  stuck?: boolean;
}

export interface StorageTable {
  all: StorageFixture[];
  volumes: Volume[];
  /** Throws `storage 'x' does not exist`. */
  get(id: string): StorageFixture;
  find(id: string): StorageFixture | undefined;
  /** Is it configured for this node and not disabled? */
  enabledOn(storage: StorageFixture, node: string): boolean;
  /** Throws the 500 texts of a storage that cannot be used on this node (08-content-list-*). */
  check(id: string, node: string): StorageFixture;
  /** `check`, and that it can be mounted. */
  activate(id: string, node: string): StorageFixture;
  list(storage: string, node: string): Volume[];
  lookup(volid: string, node: string): Volume | undefined;
  add(volume: Volume): void;
  remove(volume: Volume): void;
  usedBytes(storage: StorageFixture, node: string): number;
  /** Path on the node as task logs show it. */
  path(volume: Volume): string;
  isFileBased(storage: StorageFixture): boolean;
}

export function splitVolid(volid: string): { storage: string; name: string } | null {
  const match = /^([^:/\s]+):(.+)$/.exec(volid);
  return match === null ? null : { storage: match[1] ?? '', name: match[2] ?? '' };
}

export function volidOf(volume: Volume): string {
  // A linked clone on a file storage names its base (api-facts 5.13).
  return volume.base === null
    ? `${volume.storage}:${volume.name}`
    : `${volume.storage}:${volume.base}/${volume.name}`;
}

/** Storages of a fixture; seeds of the fixture become ISO files without content. */
export function storageTable(fixtures: readonly StorageFixture[], now: () => number): StorageTable {
  const all = [...fixtures];
  const volumes: Volume[] = [];

  const find = (id: string): StorageFixture | undefined => all.find((entry) => entry.id === id);
  const get = (id: string): StorageFixture => {
    const storage = find(id);
    if (storage === undefined) throw dieWith(`storage '${id}' does not exist`);
    return storage;
  };
  const onNode = (storage: StorageFixture, node: string): boolean =>
    storage.nodes === undefined || storage.nodes.includes(node);
  const check = (id: string, node: string): StorageFixture => {
    const storage = get(id);
    if (storage.disabled) throw dieWith(`storage '${id}' is disabled`);
    if (!onNode(storage, node)) throw dieWith(`storage '${id}' is not available on node '${node}'`);
    return storage;
  };
  const isFileBased = (storage: StorageFixture): boolean =>
    storage.type === 'dir' || storage.type === 'nfs';
  const basePath = (storage: StorageFixture): string =>
    storage.path ?? (storage.id === 'local' ? '/var/lib/vz' : `/srv/${storage.id}`);

  const table: StorageTable = {
    all,
    volumes,
    get,
    find,
    enabledOn: (storage, node) => !storage.disabled && onNode(storage, node),
    check,
    activate: (id, node) => {
      const storage = check(id, node);
      if (!storage.mounted) {
        throw dieWith(
          `unable to activate storage '${id}' - directory is expected to be a mount point but is not mounted: '${basePath(storage)}'`,
        );
      }
      return storage;
    },
    list: (id, node) =>
      volumes.filter(
        (volume) => volume.storage === id && (volume.node === null || volume.node === node),
      ),
    lookup: (volid, node) =>
      volumes.find(
        (volume) => volidOf(volume) === volid && (volume.node === null || volume.node === node),
      ),
    add: (volume) => {
      const old = volumes.find(
        (entry) =>
          entry.storage === volume.storage &&
          entry.name === volume.name &&
          entry.node === volume.node,
      );
      if (old !== undefined) table.remove(old);
      volumes.push(volume);
    },
    remove: (volume) => {
      const index = volumes.indexOf(volume);
      if (index >= 0) volumes.splice(index, 1);
    },
    usedBytes: (storage, node) =>
      storage.usedBytes +
      table.list(storage.id, node).reduce((sum, volume) => sum + volume.used, 0),
    path: (volume) => {
      const storage = get(volume.storage);
      if (!isFileBased(storage)) return `/dev/${storage.id}/${volume.name}`;
      return volume.content === 'iso'
        ? `${basePath(storage)}/template/${volume.name}`
        : `${basePath(storage)}/images/${volume.name}`;
    },
    isFileBased,
  };

  for (const storage of all) {
    for (const iso of storage.isos) {
      volumes.push({
        storage: storage.id,
        name: `iso/${iso.name}`,
        node: storage.shared ? null : (iso.node ?? null),
        content: 'iso',
        format: 'iso',
        size: iso.sizeBytes,
        used: iso.sizeBytes,
        ctime: Math.floor(now() / 1000),
        vmid: null,
        base: null,
        bytes: null,
      });
    }
  }
  return table;
}

/** Bytes that one unit of a block storage has; files are as long as they were asked for (api-facts 5.14). */
const EXTENT_BYTES: Readonly<Partial<Record<StorageFixture['type'], number>>> = {
  lvmthin: 4 * 1024 ** 2,
  zfspool: 16 * 1024,
};

/** What a volume of so many bytes really gets on this storage. */
export function allocatedSize(storage: StorageFixture, bytes: number): number {
  const extent = EXTENT_BYTES[storage.type] ?? 1;
  return Math.ceil(bytes / extent) * extent;
}

/** A new image volume for `vmid`, with the first free disk number. */
export function newImage(
  table: StorageTable,
  request: {
    storage: StorageFixture;
    node: string;
    vmid: number;
    size: number;
    used: number;
    format: 'qcow2' | 'raw';
    base: string | null;
    now: number;
    prefix?: 'vm' | 'base';
  },
): Volume {
  const { storage, node, vmid, prefix = 'vm' } = request;
  const file = table.isFileBased(storage);
  const format = file ? request.format : 'raw';
  const suffix = file ? `.${format}` : '';
  const directory = file ? `${vmid}/` : '';
  for (let number = 0; ; number += 1) {
    const name = `${directory}${prefix}-${vmid}-disk-${number}${suffix}`;
    const taken = table.list(storage.id, node).some((volume) => volume.name === name);
    if (taken) continue;
    return {
      storage: storage.id,
      name,
      node: storage.shared ? null : node,
      content: 'images',
      format,
      size: allocatedSize(storage, request.size),
      used: request.used,
      ctime: Math.floor(request.now / 1000),
      vmid,
      base: request.base,
      bytes: null,
    };
  }
}
