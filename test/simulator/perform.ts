import type { Identity } from './auth.ts';
import { isMember, type NodeState } from './cluster.ts';
import type { Core, Endpoint } from './core.ts';
import type { ProxyWorker } from './daemons.ts';
import { ApiError, dieWith, forbidden, paramError, proxyError } from './errors.ts';
import { pathProperty, route } from './routing.ts';
import { validate, type Params, type RawParams } from './schema.ts';
import type { TaskFault } from './tasks.ts';
import type { Upload } from './uploadParser.ts';

export interface ApiRequest {
  method: string;
  segments: readonly string[];
  path: string;
  raw: RawParams;
  who: Identity;
  upload: Upload | null;
  taskFault: TaskFault | null;
  worker: ProxyWorker;
}

interface Routed {
  endpoint: Endpoint;
  variables: Record<string, string>;
  raw: RawParams;
}

/** Routing, permission, proxying, validation, handler: in the order of api-facts 1.1. Returns `data`. */
export async function perform(
  core: Core,
  endpoints: readonly Endpoint[],
  request: ApiRequest,
): Promise<unknown> {
  const { method, who, worker } = request;
  const entryNode = worker.node;
  const found = route(endpoints, method, request.segments);
  if (found === null) {
    throw new ApiError(501, `Method '${method} ${request.path}' not implemented`);
  }
  const { endpoint, variables } = found;
  const raw = mergeVariables(request.raw, variables);
  if (endpoint.allowToken === false) {
    throw forbidden(`URI '${request.path}' not available with API token, need proper ticket.\n`);
  }
  endpoint.check?.({ core, entryNode, who, raw });
  const node = targetNode(core, entryNode, endpoint, variables['node']);
  const routed: Routed = { endpoint, variables, raw };
  if (endpoint.proxied === true) raw['node'] = node.name;
  if (node.name === entryNode) return onNode(core, request, routed, node, worker);
  return core.daemons.toPeer(worker, node.name, async (there) => {
    await connectTo(core, node);
    const started = core.clock.now();
    const outcome = await settle(() => onNode(core, request, routed, node, there));
    if (node.state === 'cut') {
      // Done or failed over there, but no answer came back (30-cut-in-flight-put-config).
      await core.clock.sleep(Math.max(0, core.times.cutNodeSeconds - core.clock.since(started)));
      throw proxyError(596, 'Connection timed out');
    }
    if ('error' in outcome) throw outcome.error;
    return outcome.data;
  });
}

function mergeVariables(given: RawParams, variables: Readonly<Record<string, string>>): RawParams {
  const raw: RawParams = { ...given };
  for (const [key, value] of Object.entries(variables)) {
    if (key in raw && String(raw[key]) !== value) {
      throw paramError({
        [key]: 'duplicate parameter (already defined in URI) with conflicting values!',
      });
    }
    raw[key] = value;
  }
  return raw;
}

function targetNode(
  core: Core,
  entryNode: string,
  endpoint: Endpoint,
  asked: string | undefined,
): NodeState {
  const name =
    endpoint.proxied !== true || asked === undefined || asked === 'localhost' ? entryNode : asked;
  const node = core.cluster.nodes.get(name);
  if (node === undefined) {
    throw dieWith(
      `hostname lookup '${name}' failed - failed to get address info for: ${name}: Temporary failure in name resolution`,
    );
  }
  return node;
}

/** What the client sees when the other node cannot be reached (api-facts 1.2, pve/cluster.md 21–34). */
async function connectTo(core: Core, node: NodeState): Promise<void> {
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
  if (node.pmxcfs) return;
  await core.clock.sleep(core.times.deadNodeSeconds);
  throw new ApiError(
    500,
    'RPCEnvironment init request failed: Unable to load access control list: Connection refused',
    { body: 'none' },
  );
}

/** On the node of the path: in its pveproxy, or passed on to its pvedaemon. */
async function onNode(
  core: Core,
  request: ApiRequest,
  routed: Routed,
  node: NodeState,
  worker: ProxyWorker,
): Promise<unknown> {
  const { endpoint } = routed;
  if (endpoint.protected !== true) return handle(core, request, routed, node.name);
  if (!node.pvedaemon) throw proxyError(595, 'Connection refused');
  if (!isMember(node)) throw proxyError(595, 'No route to host');
  return core.daemons.inPvedaemon(worker, node.name, () =>
    handle(core, request, routed, node.name),
  );
}

/** In the process that carries it out: validation, then the handler itself. */
async function handle(
  core: Core,
  request: ApiRequest,
  routed: Routed,
  node: string,
): Promise<unknown> {
  const { endpoint, variables, raw } = routed;
  const params = validated(endpoint, variables, raw);
  return endpoint.handler({
    core,
    worker: request.worker,
    entryNode: request.worker.node,
    node,
    params,
    who: request.who,
    upload: request.upload,
    raw: request.raw,
    taskFault: request.taskFault,
  });
}

function validated(
  endpoint: Endpoint,
  variables: Readonly<Record<string, string>>,
  raw: RawParams,
): Params {
  const variableSchema = Object.fromEntries(
    Object.keys(variables).map((key) => [key, pathProperty(key)]),
  );
  return validate(raw, { ...variableSchema, ...endpoint.schema }, endpoint.lookup);
}

async function settle(
  act: () => Promise<unknown>,
): Promise<{ data: unknown } | { error: unknown }> {
  try {
    return { data: await act() };
  } catch (error) {
    return { error };
  }
}
