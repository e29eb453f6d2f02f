/** Property strings of a VM config: `value,key=value,…`, one part of which may leave its key out (api-facts 7). */

/** One part as written; `key` is `null` where the value stands alone. */
export interface PropertyPart {
  key: string | null;
  value: string;
}

/** Parts in the order written; empty ones are dropped, as Proxmox does. */
export function parseProperties(text: string): PropertyPart[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const equals = part.indexOf('=');
      if (equals <= 0) return { key: null, value: part };
      return { key: part.slice(0, equals), value: part.slice(equals + 1) };
    });
}

/** The parts as Proxmox reads them, in their order. */
export function formatProperties(parts: readonly PropertyPart[]): string {
  return parts.map(({ key, value }) => (key === null ? value : `${key}=${value}`)).join(',');
}

/** Value of the first part with one of these keys, `null` stands for a value without key. */
export function propertyOf(
  parts: readonly PropertyPart[],
  ...keys: (string | null)[]
): string | undefined {
  return parts.find((part) => keys.includes(part.key))?.value;
}
