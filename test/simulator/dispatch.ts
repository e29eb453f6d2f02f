import type { Identity } from './auth.ts';
import type { Core, Endpoint } from './core.ts';
import type { ProxyWorker } from './daemons.ts';
import { ApiError, ConnectionClosed, dieWith, textOf, transportError } from './errors.ts';
import { targetName, withFaults } from './faultActions.ts';
import type { Gate, Outcome, RequestHandler } from './httpServer.ts';
import type { Head } from './httpWire.ts';
import { perform } from './perform.ts';
import { dataReply, errorReply } from './replies.ts';
import { remember, type SeenRequest } from './requestLog.ts';
import { parseBody, parseTarget } from './requestParams.ts';
import { isForwarded, isUploadPath } from './routing.ts';
import type { RawParams } from './schema.ts';
import { parseUpload, type Upload } from './uploadParser.ts';

const MAX_FORM_BYTES = 512 * 1024;

/** The API of one entry node: authentication, routing, checks and the shape of answers. */
export function requestHandler(
  core: Core,
  entryNode: string,
  endpoints: readonly Endpoint[],
  seen: SeenRequest[],
): RequestHandler {
  const note = (head: Head, fields: Partial<SeenRequest>): SeenRequest => {
    const target = parseTarget(head.target);
    const entry: SeenRequest = {
      time: core.clock.now(),
      node: entryNode,
      method: head.method,
      path: target.path,
      params: target.query,
      token: null,
      status: 0,
      reason: '',
      durationMs: 0,
      answered: false,
      ...fields,
    };
    remember(seen, entry);
    return entry;
  };

  const gate = (head: Head): Gate => {
    const target = parseTarget(head.target);
    const deny = (error: ApiError, needsBody = false, delayed = false): Gate => {
      const entry = note(head, { status: error.status, reason: error.message, answered: true });
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

  const handle = async (head: Head, body: Buffer, worker: ProxyWorker): Promise<Outcome> => {
    const { method } = head;
    const target = parseTarget(head.target);
    const who = core.access.authenticate(head.headers.get('authorization'));
    const started = core.clock.now();
    const entry = note(head, { token: who.authId });
    const given = readBody(head, body, isUploadPath(method, target.segments));
    if ('raw' in given) entry.params = given.raw;
    const name = targetName(core, method, target.segments, 'raw' in given ? given.raw : {});
    const outcome = await withFaults(
      core,
      { method, path: target.path, name },
      async (taskFault) => {
        try {
          if ('error' in given) throw given.error;
          if ('silent' in given) return 'silence';
          const { raw, upload } = given;
          const { path, segments, format } = target;
          const request = { method, path, segments, raw, who, upload, taskFault, worker };
          const data = await perform(core, endpoints, request);
          const reply = dataReply(data, format, upload !== null);
          const forwarded = isForwarded(endpoints, method, segments, entryNode);
          return forwarded ? { ...reply, upstreamClose: true } : reply;
        } catch (error) {
          if (error instanceof ConnectionClosed) return 'reset';
          if (error instanceof ApiError) return errorReply(error, target.format);
          return errorReply(dieWith(textOf(error)), target.format);
        }
      },
    );
    entry.durationMs = core.clock.now() - started;
    entry.answered = true;
    const lastOfWorker = core.daemons.serve(worker);
    if (typeof outcome === 'string') {
      entry.reason = outcome;
      return outcome;
    }
    entry.status = outcome.status;
    entry.reason = outcome.reason;
    return lastOfWorker ? { ...outcome, close: true } : outcome;
  };

  return { connect: () => core.daemons.connect(entryNode), gate, handle };
}

type Given = { raw: RawParams; upload: Upload | null } | { error: unknown } | { silent: true };

/** Parameters of query and body; what is no multipart where one is due gets no answer at all. */
function readBody(head: Head, body: Buffer, isUpload: boolean): Given {
  const { query } = parseTarget(head.target);
  const type = head.headers.get('content-type');
  try {
    if (isUpload) {
      const upload = parseUpload(type, body);
      if (upload === null) return { silent: true };
      return { raw: { ...query, ...upload.fields, filename: upload.filename }, upload };
    }
    const raw: RawParams = body.length > 0 ? { ...parseBody(type, body), ...query } : { ...query };
    delete raw['_dc'];
    return { raw, upload: null };
  } catch (error) {
    return { error };
  }
}
