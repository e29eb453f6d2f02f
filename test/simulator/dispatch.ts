import type { Identity } from './auth.ts';
import { isMember } from './cluster.ts';
import { listBody, Listing, type Core, type Endpoint } from './core.ts';
import {
  ApiError,
  ConnectionClosed,
  dieWith,
  forbidden,
  paramError,
  proxyError,
  textOf,
  transportError,
} from './errors.ts';
import {
  plainReply,
  type Gate,
  type Head,
  type Outcome,
  type Reply,
  type RequestHandler,
} from './httpServer.ts';
import { common, validate, type RawParams, type RawValue } from './schema.ts';
import { parseUpload, type Upload } from './uploadParser.ts';
import type { FaultAction } from './faults.ts';

const MAX_FORM_BYTES = 512 * 1024;

/** One line of the request log. */
export interface SeenRequest {
  /** Epoch ms at which the request was complete. */
  time: number;
  node: string;
  method: string;
  /** Path below /api2/json, decoded. */
  path: string;
  /** Query and form parameters, without path variables and file contents. */
  params: RawParams;
  /** `user@realm!token`, or `null` when authentication failed. */
  token: string | null;
  /** 0 when the connection was cut or nothing was answered. */
  status: number;
  reason: string;
  durationMs: number;
  /** `false` while an answer is being worked on. */
  answered: boolean;
}

interface Target {
  path: string;
  segments: string[];
  query: RawParams;
  format: string;
}

/** The API of one entry node: authentication, routing, checks and the shape of answers. */
export function requestHandler(
  core: Core,
  entryNode: string,
  endpoints: readonly Endpoint[],
  seen: SeenRequest[],
): RequestHandler {
  const note = (head: Head, status: number, reason: string): SeenRequest => {
    const target = parseTarget(head.target);
    const entry: SeenRequest = {
      time: core.clock.now(),
      node: entryNode,
      method: head.method,
      path: target.path,
      params: target.query,
      token: null,
      status,
      reason,
      durationMs: 0,
      answered: true,
    };
    seen.push(entry);
    return entry;
  };

  const gate = (head: Head): Gate => {
    const target = parseTarget(head.target);
    const deny = (error: ApiError, needsBody = false, delayed = false): Gate => {
      const entry = note(head, error.status, error.message);
      const reply = errorReply(error, target.format);
      if (delayed) {
        reply.delay = async () => {
          entry.answered = false;
          await core.clock.sleep(core.times.authDelaySeconds);
          entry.answered = true;
        };
      }
      return { deny: reply, needsBody };
    };
    if (!['GET', 'POST', 'PUT', 'DELETE'].includes(head.method)) {
      return deny(transportError(501, `method '${head.method}' not available`));
    }
    if (head.headers.has('transfer-encoding')) {
      return deny(transportError(501, 'chunked transfer encoding not supported'));
    }
    if (core.cluster.nodes.get(entryNode)?.pmxcfs === false) {
      const text =
        'RPCEnvironment init request failed: Unable to load access control list: Connection refused';
      return deny(new ApiError(500, text, { body: 'none' }));
    }
    if (target.format === '') {
      const shown = ['/', ...target.segments].join(', ');
      return deny(transportError(501, `no formatter for uri ${shown}`));
    }
    const isUpload = isUploadPath(head.method, target.segments);
    let who: Identity;
    try {
      who = core.access.authenticate(head.headers.get('authorization'));
      if (isUpload) {
        core.access.require(
          who,
          `/storage/${target.segments[3] ?? ''}`,
          'Datastore.AllocateTemplate',
        );
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return deny(new ApiError(error.status, error.message, { body: 'none' }), true, true);
    }
    if (isUpload) return { readBody: true, upload: true };
    const hasBody = head.contentLength > 0;
    if (hasBody && (head.method === 'GET' || head.method === 'DELETE')) {
      return deny(transportError(501, `Unexpected content for method '${head.method}'`));
    }
    if (head.contentLength > MAX_FORM_BYTES) return deny(transportError(501, 'for data too large'));
    const type = head.headers.get('content-type');
    if (
      hasBody &&
      type !== undefined &&
      !/^application\/(x-www-form-urlencoded|json)\b/i.test(type)
    ) {
      return deny(transportError(506, `upload 'Content-Type '${type}' not implemented`));
    }
    return { readBody: true, upload: false };
  };

  const handle = async (head: Head, body: Buffer): Promise<Outcome> => {
    const target = parseTarget(head.target);
    const who = core.access.authenticate(head.headers.get('authorization'));
    const started = core.clock.now();
    const entry: SeenRequest = {
      time: started,
      node: entryNode,
      method: head.method,
      path: target.path,
      params: target.query,
      token: who.authId,
      status: 0,
      reason: '',
      durationMs: 0,
      answered: false,
    };
    seen.push(entry);
    const outcome = await withFaults(core, head.method, target.path, async (mark) => {
      try {
        const upload = isUploadPath(head.method, target.segments);
        let raw = target.query;
        let file: Upload | null = null;
        if (upload) {
          file = parseUpload(head.headers.get('content-type'), body);
          if (file === null) return 'silence';
          raw = { ...raw, ...file.fields, filename: file.filename };
        } else if (body.length > 0) {
          raw = { ...parseBody(head.headers.get('content-type'), body), ...raw };
        }
        delete raw['_dc'];
        entry.params = raw;
        const data = await perform(core, entryNode, endpoints, {
          method: head.method,
          segments: target.segments,
          path: target.path,
          raw,
          who,
          upload: file,
          mark,
        });
        const reply = dataReply(data, target.format, upload);
        const forwarded = isForwarded(endpoints, head.method, target.segments, entryNode);
        return forwarded ? { ...reply, upstreamClose: true } : reply;
      } catch (error) {
        if (error instanceof ConnectionClosed) return 'reset';
        if (error instanceof ApiError) return errorReply(error, target.format);
        return errorReply(dieWith(textOf(error)), target.format);
      }
    });
    entry.durationMs = core.clock.now() - started;
    entry.answered = true;
    if (typeof outcome === 'string') {
      entry.reason = outcome;
      return outcome;
    }
    entry.status = outcome.status;
    entry.reason = outcome.reason;
    return outcome;
  };

  return { gate, handle };
}

/** Remembers, between a request and the task it starts, that a fault is to work on that task. */
export interface TaskMark {
  action: Extract<FaultAction, { kind: 'task' }> | null;
}

async function withFaults(
  core: Core,
  method: string,
  path: string,
  act: (mark: TaskMark) => Promise<Outcome>,
): Promise<Outcome> {
  const rule = core.faults.take(method, path);
  if (rule === undefined) return act({ action: null });
  const { action } = rule;
  switch (action.kind) {
    case 'slow':
      await core.clock.sleep(action.seconds);
      return act({ action: null });
    case 'task':
      return act({ action });
    case 'malformed': {
      const outcome = await act({ action: null });
      if (typeof outcome === 'string') return outcome;
      return { ...outcome, body: Buffer.from(action.body ?? '{"data":{"upid') };
    }
    case 'lostUpid':
      await act({ action: null });
      return errorReply(
        dieWith("can't lock file '/var/log/pve/tasks/.active.lock' - got timeout"),
        'json',
      );
    case 'status': {
      if (action.when === 'after') await act({ action: null });
      const body = action.status >= 595 || action.status === 401 ? 'none' : 'json';
      const reply = errorReply(new ApiError(action.status, action.reason, { body }), 'json');
      return action.body === undefined ? reply : { ...reply, body: Buffer.from(action.body) };
    }
    case 'reset':
    case 'hang':
      if (action.when === 'after') await act({ action: null });
      return action.kind;
    default:
      return act({ action: null });
  }
}

interface Request {
  method: string;
  segments: string[];
  path: string;
  raw: RawParams;
  who: Identity;
  upload: Upload | null;
  mark: TaskMark;
}

async function perform(
  core: Core,
  entryNode: string,
  endpoints: readonly Endpoint[],
  request: Request,
): Promise<unknown> {
  const { method, segments, who } = request;
  const found = route(endpoints, method, segments);
  if (found === null) {
    throw new ApiError(501, `Method '${method} ${request.path}' not implemented`);
  }
  const { endpoint, variables } = found;
  const raw: RawParams = { ...request.raw };
  for (const [key, value] of Object.entries(variables)) {
    if (key in raw && String(raw[key]) !== value) {
      throw paramError({
        [key]: 'duplicate parameter (already defined in URI) with conflicting values!',
      });
    }
    raw[key] = value;
  }
  if (endpoint.allowToken === false) {
    throw forbidden(`URI '${request.path}' not available with API token, need proper ticket.\n`);
  }
  endpoint.check?.({ core, entryNode, who, raw });
  const node = await reach(core, entryNode, endpoint, variables['node']);
  if (endpoint.proxied === true) raw['node'] = node;
  const variableSchema = Object.fromEntries(
    Object.keys(variables).map((key) => [key, pathProperty(key)]),
  );
  const params = validate(raw, { ...variableSchema, ...endpoint.schema }, endpoint.lookup);
  const { mark } = request;
  const before = core.tasks.faultFor;
  if (mark.action !== null) {
    const { action } = mark;
    core.tasks.faultFor = (task) => {
      core.tasks.faultFor = before;
      return task.authId === who.authId ? action : before(task);
    };
  }
  const started = core.clock.now();
  const outcome = await settle(async () => {
    const data: unknown = await endpoint.handler({
      core,
      entryNode,
      node,
      params,
      who,
      upload: request.upload,
      raw: request.raw,
    });
    return data;
  });
  if (core.cluster.nodes.get(node)?.state === 'cut') {
    // Done or failed over there, but no answer came back (30-cut-in-flight-put-config).
    await core.clock.sleep(Math.max(0, core.times.cutNodeSeconds - core.clock.since(started)));
    throw proxyError(596, 'Connection timed out');
  }
  if ('error' in outcome) throw outcome.error;
  return outcome.data;
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

/** The node that answers, or what the client sees when it cannot be reached (api-facts 1.2, pve/cluster.md 21–34). */
async function reach(
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

function pathProperty(key: string): (typeof common)['node'] | (typeof common)['vmid'] {
  if (key === 'node') return common.node;
  if (key === 'vmid') return common.vmid;
  if (key === 'storage') return common.storage;
  return { type: 'string', format: () => null };
}

function route(
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
function isForwarded(
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

function isUploadPath(method: string, segments: readonly string[]): boolean {
  return (
    method === 'POST' &&
    segments.length === 5 &&
    segments[0] === 'nodes' &&
    segments[2] === 'storage' &&
    segments[4] === 'upload'
  );
}

function parseTarget(target: string): Target {
  const question = target.indexOf('?');
  const rawPath = question < 0 ? target : target.slice(0, question);
  const query = question < 0 ? {} : parseForm(target.slice(question + 1));
  const decoded = decode(rawPath, false);
  const parts = decoded.split('/').filter((part) => part !== '');
  const format =
    parts[0] === 'api2' && /^(json|extjs)$/.test(parts[1] ?? '') ? (parts[1] ?? '') : '';
  const segments = parts.slice(format === '' ? (parts[0] === 'api2' ? 1 : 0) : 2);
  return { path: `/${segments.join('/')}`, segments, query, format };
}

/** Splits on `&` and `;` and keeps only the first two pieces around `=` (api-facts 1.5). */
function parseForm(form: string): RawParams {
  const params: RawParams = {};
  for (const pair of form.split(/[&;]/)) {
    if (pair === '') continue;
    const [key = '', value = ''] = pair.split('=');
    const name = decode(key, true);
    const text = decode(value, true);
    const before = params[name];
    params[name] = before === undefined ? text : [...asList(before), text];
  }
  return params;
}

function asList(value: RawValue): readonly (string | number | boolean)[] {
  return typeof value === 'object' ? value : [value];
}

function decode(text: string, plusIsBlank: boolean): string {
  const source = plusIsBlank ? text.replace(/\+/g, ' ') : text;
  const bytes: number[] = [];
  for (let at = 0; at < source.length; at += 1) {
    const hex = /^%([0-9A-Fa-f]{2})/.exec(source.slice(at, at + 3))?.[1];
    if (hex === undefined) bytes.push(source.charCodeAt(at) & 0xff);
    else {
      bytes.push(Number.parseInt(hex, 16));
      at += 2;
    }
  }
  return Buffer.from(bytes).toString('utf8');
}

function parseBody(contentType: string | undefined, body: Buffer): RawParams {
  if (!/^application\/json\b/i.test(contentType ?? '')) return parseForm(body.toString('latin1'));
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    throw transportErrorFromPerl(body.toString('utf8'));
  }
  const params: RawParams = {};
  if (typeof parsed !== 'object' || parsed === null) return params;
  for (const [key, value] of Object.entries(parsed)) {
    const converted = toRaw(value);
    if (converted !== null) params[key] = converted;
  }
  return params;
}

function toRaw(value: unknown): RawValue | null {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return value;
  }
  if (!Array.isArray(value)) return null;
  return value.map((item: unknown) => String(item));
}

/** JSON::XS's complaint about an object key that is no string (12-json-invalid). */
function transportErrorFromPerl(body: string): ApiError {
  const at = body.startsWith('{') ? 1 : 0;
  const near = body.slice(at).replace(/\}.*$/s, '').trim();
  return transportError(
    500,
    `'"' expected, at character offset ${at} (before "${near}") at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.`,
  );
}

function dataReply(data: unknown, format: string, close: boolean): Reply {
  const wrapped = data instanceof Listing ? listBody(data) : { data: data ?? null };
  const body = format === 'extjs' ? { ...wrapped, success: 1 } : wrapped;
  return {
    status: 200,
    reason: 'OK',
    body: Buffer.from(JSON.stringify(body)),
    contentType: 'application/json;charset=UTF-8',
    ...(close ? { close: true } : {}),
  };
}

function errorReply(error: ApiError, format: string): Reply {
  const reason = error.message.split('\n')[0] ?? '';
  if (error.body === 'none') {
    return { status: error.status, reason, body: Buffer.alloc(0), omitLength: true, close: true };
  }
  if (error.body === 'text') {
    // Perl's own `die … at line n.` messages keep their newline; those of the HTTP layer have none.
    return plainReply(error.status, reason, / line \d+\.$/.test(reason) ? `${reason}\n` : reason);
  }
  // Texts that already end in a newline get a second one (30-down-upload-to-dead-node).
  const message = error.status === 501 ? error.message : `${error.message}\n`;
  const body = {
    data: null,
    message,
    ...(error.errors === undefined ? {} : { errors: error.errors }),
  };
  if (format === 'extjs') {
    return {
      status: 200,
      reason: 'OK',
      body: Buffer.from(JSON.stringify({ ...body, status: error.status, success: 0 })),
      contentType: 'application/json;charset=UTF-8',
    };
  }
  return {
    status: error.status,
    reason,
    body: Buffer.from(JSON.stringify(body)),
    contentType: 'application/json;charset=UTF-8',
    close: true,
  };
}
