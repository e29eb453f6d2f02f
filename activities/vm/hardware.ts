/**
 * What a VM's config says about its disks, seed and NIC, and what has to change in it. Pure functions over the
 * config's text values; rules of api-facts 5.12 and 7, cases.md 19.
 */
import { formatProperties, parseProperties, propertyOf } from './propertyString.ts';

/** Values of a VM config, all as text. */
export type ConfigValues = Readonly<Record<string, string>>;

export interface Drive {
  /** Volume id, `none`, `cdrom` or a path. */
  volume: string;
  /** The volume id's storage; `null` when the volume has none. */
  storage: string | null;
  cdrom: boolean;
  /** From `size=`, which may be missing or older than the volume's actual size. */
  sizeBytes: number | null;
}

export interface BootDisk {
  key: string;
  volume: string;
  storage: string | null;
  sizeBytes: number | null;
}

/** The one tag of our VMs (spec, The config write). */
export const vmTag = 'proxy_operator';

const guestDriveKey = /^(?:ide[0-3]|sata[0-5]|scsi(?:[12]?[0-9]|30)|virtio(?:[0-9]|1[0-5]))$/;
const firmwareDriveKey = /^(?:efidisk0|tpmstate0)$/;
const macPattern = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i;
const bytesPerUnit: Readonly<Record<string, number>> = {
  K: 1024,
  M: 1024 ** 2,
  G: 1024 ** 3,
  T: 1024 ** 4,
};

/** Bytes of a size as Proxmox prints it: `528K`, `3584M`, `1T`, plain bytes; `null` when unreadable. */
export function parseSize(text: string): number | null {
  const { amount, unit } =
    /^(?<amount>[0-9]+(?:\.[0-9]+)?)(?<unit>[KMGT])?$/.exec(text)?.groups ?? {};
  if (amount === undefined) return null;
  const factor = unit === undefined ? 1 : bytesPerUnit[unit];
  return factor === undefined ? null : Math.floor(Number(amount) * factor);
}

function storageOf(volume: string): string | null {
  return /^(?<storage>[A-Za-z][A-Za-z0-9._-]*):/.exec(volume)?.groups?.storage ?? null;
}

/** A drive's value, with `file=`/`volume=` or without, in any position; `null` when it names no volume. */
export function parseDrive(text: string): Drive | null {
  const parts = parseProperties(text);
  const volume = propertyOf(parts, null, 'file', 'volume');
  if (volume === undefined || volume === '') return null;
  const empty = volume === 'none' || volume === 'cdrom';
  return {
    volume,
    storage: storageOf(volume),
    cdrom: empty || propertyOf(parts, 'media') === 'cdrom',
    sizeBytes: parseSize(propertyOf(parts, 'size') ?? ''),
  };
}

function driveAt(values: ConfigValues, key: string): Drive | null {
  const text = values[key];
  return text === undefined ? null : parseDrive(text);
}

/** Keys of the disks a clone copies, sorted: no CD-ROM, no `unusedN`; efidisk0 and tpmstate0 belong to it. */
export function diskKeys(values: ConfigValues): string[] {
  return Object.keys(values)
    .filter((key) => guestDriveKey.test(key) || firmwareDriveKey.test(key))
    .filter((key) => driveAt(values, key)?.cdrom === false)
    .toSorted();
}

/** Devices of `boot: order=…`, `null` when the option is absent or in the legacy form. */
function bootOrder(boot: string | undefined): string[] | null {
  const order = /(?:^|,)\s*order=(?<order>.*)$/.exec(boot ?? '')?.groups?.order;
  return order === undefined ? null : order.split(/[\s,;]+/);
}

/**
 * The disk the VM boots from: the first entry of `boot: order=` that is a disk and no CD-ROM. Without an order it
 * is what the legacy `bootdisk` names; without that none, even where there is only one disk, because Proxmox
 * itself counts none then (api-facts 7). Never efidisk, tpmstate or unused.
 */
export function bootDisk(values: ConfigValues): BootDisk | null {
  const candidates = bootOrder(values.boot) ?? [values.bootdisk ?? ''];
  for (const key of candidates) {
    const drive = guestDriveKey.test(key) ? driveAt(values, key) : null;
    if (drive === null || drive.cdrom) continue;
    return { key, volume: drive.volume, storage: drive.storage, sizeBytes: drive.sizeBytes };
  }
  return null;
}

/** The slot with a Proxmox cloud-init drive, whose data would win over our seed; `null` when there is none. */
export function cloudInitDrive(values: ConfigValues): string | null {
  const slots = Object.keys(values).filter((key) => guestDriveKey.test(key));
  return slots.toSorted().find((key) => values[key]?.includes('cloudinit')) ?? null;
}

/** What a template must fit: the words of the placement, and which changes the plan will make. */
export interface TemplateWish {
  image: string;
  vmid: number;
  /** The config sets `bridge` or `vlanTag`. */
  wantsNetChange: boolean;
  diskGiB: number | null;
}

/**
 * Why this template cannot become a working VM, as a sentence for the user; `null` when it can. Checked on the
 * template, because a clone copies its config (spec, Proxmox prerequisites 2).
 */
export function checkTemplate(values: ConfigValues, wish: TemplateWish): string | null {
  const template = `placement.image "${wish.image}": template VM ${wish.vmid}`;
  if (values.template !== '1') return `${template} is not a template`;
  const cloudInit = cloudInitDrive(values);
  if (cloudInit !== null) {
    return `${template} has a Proxmox cloud-init drive on ${cloudInit}, which would compete with the seed; remove it with: qm set ${wish.vmid} --delete ${cloudInit}`;
  }
  if (driveAt(values, 'ide2')?.cdrom === false) {
    return `${template} has a disk on ide2, where the seed is attached; move the disk to another slot`;
  }
  if (wish.wantsNetChange && values.net0 === undefined) {
    return `${template} has no net0, and the provider sets bridge or vlanTag; add one with: qm set ${wish.vmid} --net0 virtio,bridge=<bridge>`;
  }
  if (wish.diskGiB === null) return null;
  const disk = bootDisk(values);
  if (disk === null) {
    return `${template} has no boot disk, and the machine type sets diskGiB; name one with: qm set ${wish.vmid} --boot order=<disk>`;
  }
  if (disk.sizeBytes === null) {
    return `${template} has a boot disk ${disk.key} without a readable size=, and the machine type sets diskGiB; refresh it with: qm disk rescan --vmid ${wish.vmid}`;
  }
  return null;
}

/** MAC of a NIC in upper case, in any legal spelling (`virtio=<MAC>`, `model=virtio,macaddr=<MAC>`); `null` without one. */
export function netMac(net0: string): string | null {
  const mac = parseProperties(net0).find(
    ({ key, value }) => key !== null && macPattern.test(value),
  );
  return mac === undefined ? null : mac.value.toUpperCase();
}

/**
 * net0 on another bridge or VLAN, `null` when nothing is to change. Model, MAC and every other option stay as they
 * are: a net0 written without its MAC gets a new one on every write (pve/README 23).
 */
export function rewriteNet0(
  net0: string,
  wish: { bridge: string | null; vlanTag: number | null },
): string | null {
  const parts = parseProperties(net0);
  const wanted: [string, string][] = [];
  if (wish.bridge !== null && propertyOf(parts, 'bridge') !== wish.bridge) {
    wanted.push(['bridge', wish.bridge]);
  }
  if (wish.vlanTag !== null && Number(propertyOf(parts, 'tag')) !== wish.vlanTag) {
    wanted.push(['tag', String(wish.vlanTag)]);
  }
  if (wanted.length === 0) return null;
  const changed = wanted.reduce(
    (current, [key, value]) =>
      propertyOf(current, key) === undefined
        ? [...current, { key, value }]
        : current.map((part) => (part.key === key ? { key, value } : part)),
    parts,
  );
  return formatProperties(changed);
}

/** The ISO in the CD-ROM drive on ide2 as a volume id; `null` when there is no drive or no medium. */
export function ideSeedVolid(values: ConfigValues): string | null {
  const drive = driveAt(values, 'ide2');
  return drive === null || !drive.cdrom || drive.storage === null ? null : drive.volume;
}

function memoryMiBOf(values: ConfigValues): string | undefined {
  return propertyOf(parseProperties(values.memory ?? ''), null, 'current');
}

/** Switched on, whatever else the option says. */
export function agentIsEnabled(agent: string | undefined): boolean {
  return /^(?:enabled=)?(?:1|on|yes|true)(?:,|$)/i.test(agent ?? '');
}

/** Our tag is among those of the VM. */
export function hasOurTag(tags: string | undefined): boolean {
  return (tags ?? '').split(/[\s,;]+/).includes(vmTag);
}

/** On, and no further option: what `agent: 1` means, however it is spelt. */
function agentIsPlain(agent: string | undefined): boolean {
  const [enabled, ...others] = parseProperties(agent ?? '');
  if (enabled === undefined || others.length > 0) return false;
  const isSwitch = enabled.key === null || enabled.key === 'enabled';
  return isSwitch && /^(?:1|on|yes|true)$/i.test(enabled.value);
}

function hasOnlyOurTag(tags: string | undefined): boolean {
  const set = new Set(
    (tags ?? '')
      .toLowerCase()
      .split(/[\s,;]+/)
      .filter((tag) => tag !== ''),
  );
  return set.size === 1 && set.has(vmTag);
}

export interface ConfigWish {
  cores: number;
  memoryMiB: number;
  isoVolid: string;
  bridge: string | null;
  vlanTag: number | null;
  /** The clone inherited `protection` from its template. */
  clearProtection: boolean;
}

/**
 * The one config write of the specification, reduced to what differs. Values are compared as Proxmox means them,
 * because it gives them back in another form: ide2 with `,size=…`, tags sorted, memory as a string.
 */
export function configChanges(
  values: ConfigValues,
  wish: ConfigWish,
): { set: Record<string, string>; delete: string[] } {
  const set: Record<string, string> = {};
  if (values.cores !== String(wish.cores)) set.cores = String(wish.cores);
  if (memoryMiBOf(values) !== String(wish.memoryMiB)) set.memory = String(wish.memoryMiB);
  if (!agentIsPlain(values.agent)) set.agent = '1';
  if (!hasOnlyOurTag(values.tags)) set.tags = vmTag;
  if (ideSeedVolid(values) !== wish.isoVolid) set.ide2 = `${wish.isoVolid},media=cdrom`;
  const net0 = values.net0 === undefined ? null : rewriteNet0(values.net0, wish);
  if (net0 !== null) set.net0 = net0;
  const clear = wish.clearProtection && values.protection === '1';
  return { set, delete: clear ? ['protection'] : [] };
}

/**
 * Which disk to grow and to what absolute size, `null` when there is nothing to grow. Decided on the volume's
 * actual size: a resize without quorum grows the disk and then fails (pve/cluster.md), and Proxmox never shrinks.
 */
export function resizeTarget(
  values: ConfigValues,
  diskGiB: number | null,
  actualBytes: number,
): { disk: string; size: string } | null {
  const disk = bootDisk(values);
  if (diskGiB === null || disk === null || actualBytes >= diskGiB * 1024 ** 3) return null;
  return { disk: disk.key, size: `${diskGiB}G` };
}
