import { isMember } from './cluster.ts';
import type { Core, Endpoint } from './core.ts';
import { ApiError, dieWith, proxyError } from './errors.ts';
import { common } from './schema.ts';

/** The node that answers, or what the client sees when it cannot be reached (api-facts 1.2, pve/cluster.md 21–34). */
export async function reach(
  core: Core,
  entryNode: string,
  endpoint: Endpoint,
  asked: string | undefined,
): Promise<string> {
  const name =
    endpoint.proxied !== true || asked === undefined || asked === 'localhost' ? entryNode : asked;
  const node = core.cluster.nodes.get(name);
  if (node === undefined) {
    throw dieWith(
      `hostname lookup '${name}' failed - failed to get address info for: ${name}: Temporary failure in name resolution`,
    );
  }
  if (name !== entryNode) {
    switch (node.state) {
      case 'dead':
      case 'absent':
        await core.clock.sleep(core.times.deadNodeSeconds);
        throw proxyError(595, 'No route to host');
      case 'cut':
        await core.clock.sleep(core.times.cutNodeSeconds);
        throw proxyError(595, 'Connection timed out');
      case 'refusing':
        throw proxyError(595, 'Connection refused');
      case 'up':
        break;
      default:
        break;
    }
    if (!node.pmxcfs) {
      await core.clock.sleep(core.times.deadNodeSeconds);
      throw new ApiError(
        500,
        'RPCEnvironment init request failed: Unable to load access control list: Connection refused',
        { body: 'none' },
      );
    }
  }
  if (endpoint.protected === true && !node.pvedaemon) throw proxyError(595, 'Connection refused');
  if (!isMember(node)) throw proxyError(595, 'No route to host');
  return name;
}

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
