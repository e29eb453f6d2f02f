import type { Identity } from './auth.ts';
import type { Core, Endpoint } from './core.ts';
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
import type { Gate, Head, Outcome, RequestHandler } from './httpServer.ts';
import { dataReply, errorReply } from './replies.ts';
import { parseBody, parseTarget } from './requestParams.ts';
import { isForwarded, isUploadPath, pathProperty, reach, route } from './routing.ts';
import { validate, type RawParams } from './schema.ts';
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
    remember(seen, entry);
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
    remember(seen, entry);
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

/** The log keeps the last requests, for days if need be. */
const REMEMBERED = 50_000;

function remember(seen: SeenRequest[], entry: SeenRequest): void {
  if (seen.length >= REMEMBERED) seen.splice(0, REMEMBERED / 10);
  seen.push(entry);
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
