/** The spec hash: what must be equal for a VM to serve a spec (design §3). */
import { createHash } from 'node:crypto';
import type { Mode, Placement } from '../../workflows/contract/proxy.ts';

export interface SpecHashInput {
  mode: Mode;
  /** `null` for External. */
  provider: string | null;
  placement: Placement;
  /** The content, wherever it comes from; `null` for External. */
  cloudInit: Uint8Array | string | null;
}

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/**
 * RFC 8785: ECMAScript's own spelling of strings and numbers, no blanks, keys by UTF-16 code units (which is how
 * `<` compares strings).
 */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.entries(value)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}

/** Text where the bytes are UTF-8, so that inline content and a Secret of the same bytes agree; else (gzip) base64. */
function cloudInitValue(content: Uint8Array | string | null): Json {
  if (content === null || typeof content === 'string') return content;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return { base64: Buffer.from(content).toString('base64') };
  }
}

/**
 * SHA-256 in full hex over mode, provider, placement (absent = null) and the cloud-init content. Port, health check
 * and policies are not in it: changing them needs no other VM.
 */
export function specHash(input: SpecHashInput): string {
  const { region, zone, machineType, image } = input.placement;
  const json = canonicalJson({
    mode: input.mode,
    provider: input.provider,
    placement: { region, zone, machineType, image },
    cloudInit: cloudInitValue(input.cloudInit),
  });
  return createHash('sha256').update(json, 'utf8').digest('hex');
}
