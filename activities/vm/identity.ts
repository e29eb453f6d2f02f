/** The names of a VM and of what belongs to it: formatted and parsed here and nowhere else (design §3). */
import { createHash } from 'node:crypto';
import { seedSuffix, type DeletionPolicy } from '../../workflows/contract/proxy.ts';

/** What a VM name says about its VM; `slug` is for people, the other three for the operator. */
export interface VmNameParts {
  slug: string;
  /** First 6 hex digits of SHA-256(installation id). */
  installationHex: string;
  /** First 8 hex digits of the Proxy's UID. */
  uidPrefix: string;
  /** First 6 hex digits of the spec hash. */
  specPrefix: string;
}

const maxSlugLength = 20;
/** Proxmox refuses VMIDs below this one; its schema ends at 999999999 (api-facts 5.13). */
export const lowestVmid = 100;
const maxProbes = 32;

const vmNamePattern =
  /^proxy-(?<slug>[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?)-(?<installationHex>[0-9a-f]{6})-(?<uidPrefix>[0-9a-f]{8})-(?<specPrefix>[0-9a-f]{6})$/;

/** First 6 hex digits of SHA-256 over the installation id: the part of every VM name that says whose it is. */
export function installationHex(id: string): string {
  return createHash('sha256').update(id, 'utf8').digest('hex').slice(0, 6);
}

/** Cut before the dashes are taken off: the cut may end on one, and a label must not. */
function slugOf(proxyName: string): string {
  const dashed = proxyName.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-');
  const slug = dashed.slice(0, maxSlugLength).replaceAll(/^-+|-+$/g, '');
  // Kubernetes allows no name without a letter or digit; `x` keeps the function total and the name parseable.
  return slug === '' ? 'x' : slug;
}

function hexPrefix(what: string, text: string, length: number): string {
  const prefix = text.slice(0, length).toLowerCase();
  if (prefix.length === length && /^[0-9a-f]+$/.test(prefix)) return prefix;
  throw new TypeError(
    `cannot name a VM: the ${what} "${text}" does not start with ${length} hex digits, and a name without them could not be recognised again`,
  );
}

/**
 * `proxy-<slug>-<hex6>-<first 8 of UID>-<6 hex of specHash>`: a DNS label of at most 49 characters.
 * Throws TypeError when a part is not hex, because the operator would not recognise its own VM.
 */
export function vmNameFor(parts: {
  proxyName: string;
  uid: string;
  installationHex: string;
  specHash: string;
}): string {
  const installation = hexPrefix('installation hex', parts.installationHex, 6);
  const uid = hexPrefix('UID', parts.uid, 8);
  const spec = hexPrefix('spec hash', parts.specHash, 6);
  return `proxy-${slugOf(parts.proxyName)}-${installation}-${uid}-${spec}`;
}

/** Parts of a VM name of our pattern, `null` for every other name. */
export function parseVmName(name: string): VmNameParts | null {
  const groups = vmNamePattern.exec(name)?.groups;
  if (groups === undefined) return null;
  const { slug = '', installationHex: hex = '', uidPrefix = '', specPrefix = '' } = groups;
  return { slug, installationHex: hex, uidPrefix, specPrefix };
}

/** File name of a VM's seed on the ISO storage. */
export function seedFileFor(vmName: string): string {
  return `${vmName}${seedSuffix}`;
}

/** The VM name inside a seed's file name and that name's parts, `null` when the file is not one of our seeds. */
export function parseSeedFile(file: string): (VmNameParts & { vmName: string }) | null {
  if (!file.endsWith(seedSuffix)) return null;
  const vmName = file.slice(0, -seedSuffix.length);
  const parts = parseVmName(vmName);
  return parts === null ? null : { ...parts, vmName };
}

/** Volume id of a seed, as `ide2` and the storage's listing spell it. */
export function seedVolidFor(isoStorage: string, seedFile: string): string {
  return `${isoStorage}:iso/${seedFile}`;
}

/** 32-bit FNV-1a over the UTF-8 bytes of the text. */
export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) {
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash >>> 0;
}

/**
 * VMIDs to try for a UID, in order: its hash placed in the range, then one at a time forward, wrapping at `max`.
 * At most 32, fewer in a smaller range; both bounds belong to the range. Throws RangeError on an impossible range.
 */
export function vmidCandidates(uid: string, min: number, max: number): number[] {
  if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max) || min < lowestVmid || max < min) {
    throw new RangeError(`VMID range ${min} to ${max} is empty or starts below ${lowestVmid}`);
  }
  const size = max - min + 1;
  const first = fnv1a32(uid.toLowerCase()) % size;
  return Array.from(
    { length: Math.min(maxProbes, size) },
    (_, probe) => min + ((first + probe) % size),
  );
}

/**
 * Our lines in a VM's description. The specification knows the first three; `null` stands for a line that is not
 * there (a VM of an older operator) or says nothing we know.
 */
export interface Mark {
  /** `retained`: kept on purpose after its Proxy was deleted (design §2, deletionPolicy). */
  managed: 'true' | 'retained';
  /** Empty when the mark names no UID; such a VM may be adopted on its exact name (spec, What lands on Proxmox). */
  uid: string;
  /** ISO 8601. The clone's own `meta: ctime=` is the template's. */
  createdAt: string | null;
  installation: string | null;
  /** `<namespace>/<name>`, for people. */
  proxy: string | null;
  /** The full spec hash. */
  spec: string | null;
  deletionPolicy: DeletionPolicy | null;
}

const markKeys = [
  'managed',
  'uid',
  'created-at',
  'installation',
  'proxy',
  'spec',
  'deletion-policy',
] as const;
type MarkKey = (typeof markKeys)[number];
/** A lone CR ends the value: it can be inside a line, because lines end at LF here. */
const markLine = new RegExp(
  `^\\s*proxy-operator-(?<key>${markKeys.join('|')})=(?<value>[^\\r\\u2028\\u2029]*)`,
);
/** Limit of `description` in PUT config (api-facts 5.12), in characters. */
const maxDescriptionLength = 8192;

function parseMarkLine(line: string): { key: string; value: string } | null {
  const { key, value } = markLine.exec(line)?.groups ?? {};
  return key === undefined || value === undefined ? null : { key, value: value.trim() };
}

/** The mark as lines, without a line break at the end, which Proxmox would cut. Throws TypeError on a value of several lines. */
export function formatMark(mark: Mark): string {
  const values: Record<MarkKey, string | null> = {
    managed: mark.managed,
    uid: mark.uid,
    'created-at': mark.createdAt,
    installation: mark.installation,
    proxy: mark.proxy,
    spec: mark.spec,
    'deletion-policy': mark.deletionPolicy,
  };
  const lines: string[] = [];
  for (const key of markKeys) {
    const value = values[key];
    if (value === null) continue;
    if (/[\r\n]/.test(value)) {
      throw new TypeError(
        `proxy-operator-${key} of a mark may not span lines: ${JSON.stringify(value)}`,
      );
    }
    lines.push(`proxy-operator-${key}=${value}`);
  }
  return lines.join('\n');
}

/**
 * The mark in a description, `null` when there is none: no `proxy-operator-managed=` with a value we know. Of a
 * line given twice the first counts: `mergeMark` writes ours first, so text pasted below cannot change the owner.
 */
export function parseMark(description: string): Mark | null {
  const found = new Map<string, string>();
  for (const line of description.split('\n')) {
    const parsed = parseMarkLine(line);
    if (parsed !== null && !found.has(parsed.key)) found.set(parsed.key, parsed.value);
  }
  const managed = found.get('managed');
  if (managed !== 'true' && managed !== 'retained') return null;
  const policy = found.get('deletion-policy');
  return {
    managed,
    uid: found.get('uid') ?? '',
    createdAt: found.get('created-at') ?? null,
    installation: found.get('installation') ?? null,
    proxy: found.get('proxy') ?? null,
    spec: found.get('spec') ?? null,
    deletionPolicy: policy === 'Delete' || policy === 'Retain' ? policy : null,
  };
}

/**
 * The description with this mark instead of the one it has. Lines of others keep their bytes and their order; the
 * mark stands where its first line stood, else on top. Merging twice changes nothing, and what Proxmox gives back
 * equals what was written (it cuts blanks at the end). Only where the whole would pass Proxmox's 8192 characters do
 * the last characters of the others' text give way: a mark that is not kept current could cost a VM to be retained.
 */
export function mergeMark(description: string, mark: Mark): string {
  const block = formatMark(mark);
  const before: string[] = [];
  const after: string[] = [];
  let seen = false;
  for (const line of description.trimEnd().split('\n')) {
    if (parseMarkLine(line) !== null) seen = true;
    else if (seen) after.push(line);
    else before.push(line);
  }
  if (description.trimEnd() === '') return block;
  const head = seen ? before : [];
  const tail = seen ? after : before;
  const merged = [...head, block, ...tail].join('\n').trimEnd();
  const excess = characters(merged).length - maxDescriptionLength;
  if (excess <= 0) return merged;
  return shortened(head.join('\n'), block, tail.join('\n'), excess);
}

/** Takes `excess` characters from the end of the text below the mark, then of the text above it. */
function shortened(head: string, block: string, tail: string, excess: number): string {
  const cutTail = dropLast(tail, excess);
  const cutHead = dropLast(head, excess - characters(tail).length);
  return [cutHead, block, cutTail]
    .filter((part) => part !== '')
    .join('\n')
    .trimEnd();
}

/** Whole characters, as Proxmox counts them; cutting between two never leaves half of one. */
function characters(text: string): string[] {
  return Array.from(text);
}

function dropLast(text: string, count: number): string {
  if (count <= 0) return text;
  const all = characters(text);
  return all.slice(0, Math.max(0, all.length - count)).join('');
}
