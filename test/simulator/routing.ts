import type { Endpoint } from './core.ts';
import { common } from './schema.ts';

/** Schema of a path variable. */
export function pathProperty(key: string): (typeof common)['node'] | (typeof common)['vmid'] {
  if (key === 'node') return common.node;
  if (key === 'vmid') return common.vmid;
  if (key === 'storage') return common.storage;
  return { type: 'string', format: () => null };
}

/** The endpoint of a path, with its variables. */
export function route(
  endpoints: readonly Endpoint[],
  method: string,
  segments: readonly string[],
): { endpoint: Endpoint; variables: Record<string, string> } | null {
  for (const endpoint of endpoints) {
    if (endpoint.method !== method) continue;
    const variables = matchPath(endpoint.path, segments);
    if (variables !== null) return { endpoint, variables };
  }
  return null;
}

/** Was the request passed on to pvedaemon or another node? Only GETs reuse that connection (api-facts 1.2). */
export function isForwarded(
  endpoints: readonly Endpoint[],
  method: string,
  segments: readonly string[],
  entryNode: string,
): boolean {
  const found = route(endpoints, method, segments);
  if (found === null || method === 'GET') return false;
  const { node } = found.variables;
  const elsewhere = found.endpoint.proxied === true && node !== undefined && node !== entryNode;
  return found.endpoint.protected === true || elsewhere;
}

function matchPath(template: string, segments: readonly string[]): Record<string, string> | null {
  const parts = template.split('/').filter((part) => part !== '');
  const variables: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const rest = /^\{(\w+)\.\.\.\}$/.exec(part)?.[1];
    if (rest !== undefined) {
      if (segments.length <= index) return null;
      variables[rest] = segments.slice(index).join('/');
      return variables;
    }
    const segment = segments[index];
    if (segment === undefined) return null;
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name !== undefined) variables[name] = segment;
    else if (part !== segment) return null;
  }
  return parts.length === segments.length ? variables : null;
}

/** Uploads are checked before their body is read (api-facts 1.1). */
export function isUploadPath(method: string, segments: readonly string[]): boolean {
  return (
    method === 'POST' &&
    segments.length === 5 &&
    segments[0] === 'nodes' &&
    segments[2] === 'storage' &&
    segments[4] === 'upload'
  );
}
