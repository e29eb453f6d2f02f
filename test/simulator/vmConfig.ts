import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { paramError } from './errors.ts';

/** A `.conf` file in memory: key → text as stored, without the digest. */
export type Config = Map<string, string>;

const INTEGER_KEYS = new Set(['cores', 'sockets', 'vcpus', 'cpuunits', 'shares', 'balloon']);
const BOOLEAN_KEYS = new Set(
  'onboot autostart reboot kvm acpi tablet protection template numa freeze localtime tdf ciupgrade'.split(
    ' ',
  ),
);

export const DISK_KEYS: readonly string[] = [
  ...keys('ide', 4),
  ...keys('scsi', 31),
  ...keys('virtio', 16),
  ...keys('sata', 6),
  'efidisk0',
  'tpmstate0',
];
const BOOTABLE_DISKS = new Set(DISK_KEYS.filter((key) => !/^(efidisk|tpmstate)/.test(key)));

function keys(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_unused, index) => `${prefix}${index}`);
}

export function isDiskKey(key: string): boolean {
  return DISK_KEYS.includes(key);
}

/** JSON shape of a config value: integers and booleans are numbers, all else text (api-facts 1.7). */
export function jsonValue(key: string, value: string): string | number {
  return INTEGER_KEYS.has(key) || BOOLEAN_KEYS.has(key) ? Number(value) : value;
}

/** The file as PVE::QemuServer::write_vm_config renders it, and its SHA-1: the `digest` (03-config-clone-locked). */
export function digestOf(config: Config, pending: Config, pendingDelete: Iterable<string>): string {
  let raw = renderSection(config);
  const deletions = [...pendingDelete];
  if (pending.size > 0 || deletions.length > 0) {
    raw += '\n[PENDING]\n';
    if (deletions.length > 0) raw += `delete: ${deletions.sort().join(',')}\n`;
    raw += renderSection(pending);
  }
  return createHash('sha1').update(raw, 'utf8').digest('hex');
}

function renderSection(config: Config): string {
  let raw = '';
  const description = config.get('description');
  if (description !== undefined) {
    for (const line of description.split('\n')) {
      raw += `#${line.replace(/[%\r]/g, (char) => encodeURIComponent(char))}\n`;
    }
  }
  for (const key of [...config.keys()].sort()) {
    if (key !== 'description') raw += `${key}: ${config.get(key) ?? ''}\n`;
  }
  return raw;
}

/** A property string: the bare first value under `head`, then `key=value` pairs. */
export interface PropertyString {
  head: string | null;
  options: Map<string, string>;
}

function parsePropertyString(text: string): PropertyString {
  const options = new Map<string, string>();
  let head: string | null = null;
  for (const part of text.split(',')) {
    const equals = part.indexOf('=');
    if (equals < 0) head ??= part;
    else options.set(part.slice(0, equals), part.slice(equals + 1));
  }
  return { head, options };
}

export interface Drive {
  /** Volume id, `none` or `cdrom`. */
  file: string;
  options: Map<string, string>;
}

/** Throws 400 when the text names no file (api-facts 5.12). */
export function parseDrive(key: string, text: string): Drive {
  const { head, options } = parsePropertyString(text);
  const file = head ?? options.get('file') ?? options.get('volume');
  if (file === undefined) throw paramError({ [key]: 'unable to parse drive options' });
  options.delete('file');
  options.delete('volume');
  return { file, options };
}

export function printDrive(drive: Drive): string {
  const rest = [...drive.options].sort(([a], [b]) => (a < b ? -1 : 1));
  return [drive.file, ...rest.map(([key, value]) => `${key}=${value}`)].join(',');
}

export function isCdrom(drive: Drive): boolean {
  return drive.options.get('media') === 'cdrom';
}

export function isIsoVolume(file: string): boolean {
  return /^[^:]+:iso\//.test(file);
}

/** Every drive of a config, sorted by key as a clone walks them. */
export function drivesOf(config: Config): { key: string; drive: Drive }[] {
  return [...config]
    .filter(([key]) => isDiskKey(key) || /^unused\d+$/.test(key))
    .map(([key, value]) => ({ key, drive: parseDrive(key, value) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

const NET_MODELS = new Set(['virtio', 'e1000', 'e1000e', 'rtl8139', 'vmxnet3', 'i82551']);
const NET_OPTIONS = new Set(
  'bridge tag firewall link_down mtu queues rate trunks model macaddr host'.split(' '),
);

export interface Nic {
  model: string;
  mac: string;
  options: Map<string, string>;
}

/**
 * Reads a NIC; one without a MAC gets a new one every time, as in PVE (05-config-after-post). Throws the captured
 * 400 texts for unknown keys, multicast MACs and VLAN tags out of range.
 */
export function parseNic(key: string, text: string): Nic {
  const { head, options } = parsePropertyString(text);
  let model = head ?? options.get('model') ?? '';
  let mac = options.get('macaddr') ?? null;
  const complaints: string[] = [];
  for (const [option, value] of options) {
    if (NET_MODELS.has(option)) {
      model = option;
      mac = value;
      options.delete(option);
      continue;
    }
    if (!NET_OPTIONS.has(option)) {
      complaints.push(
        `${key}.${option}: property is not defined in schema and the schema does not allow additional properties`,
      );
    }
  }
  const tag = options.get('tag');
  if (tag !== undefined && !/^\d+$/.test(tag)) {
    complaints.push(`${key}.tag: type check ('integer') failed - got '${tag}'`);
  } else if (tag !== undefined && Number(tag) > 4094) {
    complaints.push(`${key}.tag: value must have a maximum value of 4094`);
  } else if (tag !== undefined && Number(tag) < 1) {
    complaints.push(`${key}.tag: value must have a minimum value of 1`);
  }
  if (mac !== null && !isUnicastMac(mac)) {
    complaints.push(
      `${key}.macaddr: invalid format - value does not look like a valid unicast MAC address\n`,
    );
  }
  if (!NET_MODELS.has(model))
    complaints.push(`${key}.model: property is missing and it is not optional`);
  if (complaints.length > 0) {
    throw paramError({ [key]: `invalid format - format error\n${complaints.join('\n')}\n` });
  }
  options.delete('model');
  options.delete('macaddr');
  return { model, mac: (mac ?? randomMac()).toUpperCase(), options };
}

export function printNic(nic: Nic): string {
  const bridge = nic.options.get('bridge');
  const rest = [...nic.options]
    .filter(([key]) => key !== 'bridge')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`);
  return [
    `${nic.model}=${nic.mac}`,
    ...(bridge === undefined ? [] : [`bridge=${bridge}`]),
    ...rest,
  ].join(',');
}

function isUnicastMac(mac: string): boolean {
  return (
    /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(mac) && (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0
  );
}

/** Proxmox's own prefix, as in every capture. */
export function randomMac(): string {
  const tail = [...randomBytes(3)].map((byte) => byte.toString(16).padStart(2, '0'));
  return `BC:24:11:${tail.join(':')}`.toUpperCase();
}

export function newSmbios(old: string | undefined): string {
  const options = parsePropertyString(old ?? '').options;
  options.set('uuid', randomUUID());
  return [...options].map(([key, value]) => `${key}=${value}`).join(',');
}

/** Is the guest agent switched on? (`1`, `enabled=1,…`). */
export function agentEnabled(config: Config): boolean {
  const value = config.get('agent');
  if (value === undefined) return false;
  const { head, options } = parsePropertyString(value);
  return /^(1|on|yes|true)$/.test(head ?? options.get('enabled') ?? '0');
}

/** Devices named by `boot: order=`; `null` when the key is absent or in legacy form. */
export function bootOrder(config: Config): string[] | null {
  const order = /^order=(.*)$/.exec(config.get('boot') ?? '')?.[1];
  return order === undefined ? null : order.split(/[;, ]/).filter((device) => device !== '');
}

/** The disk whose `size=` is reported as maxdisk (api-facts 7). */
export function bootDisk(config: Config): Drive | null {
  const candidates = bootOrder(config) ?? [config.get('bootdisk') ?? ''];
  for (const key of candidates) {
    const value = config.get(key);
    if (value === undefined || !BOOTABLE_DISKS.has(key)) continue;
    const drive = parseDrive(key, value);
    if (!isCdrom(drive)) return drive;
  }
  return null;
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  K: 1024,
  M: 1024 ** 2,
  G: 1024 ** 3,
  T: 1024 ** 4,
};

/** Bytes of `64M`, `0.25G`, `268435456`; `null` when it is no size. */
export function parseSize(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text);
  if (match === null) return null;
  return Math.floor(Number(match[1]) * (UNITS[match[2] ?? ''] ?? 1));
}

/** The largest unit that divides exactly (api-facts 5.14). */
export function printSize(bytes: number): string {
  for (const unit of ['T', 'G', 'M', 'K']) {
    const factor = UNITS[unit] ?? 1;
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor}${unit}`;
  }
  return String(bytes);
}

/** Tags as stored: lower case, sorted, once each, joined by `;` (05-config-103-after-tags). */
export function normaliseTags(text: string): string {
  const tags = text
    .toLowerCase()
    .split(/[,;\s]+/)
    .filter((tag) => tag !== '');
  return [...new Set(tags)].sort().join(';');
}
