import { listBody, Listing } from './core.ts';
import type { ApiError } from './errors.ts';
import { plainReply, type Reply } from './httpWire.ts';

/** 200 with `data`; `close` after uploads, and in the manner of the asked formatter. */
export function dataReply(data: unknown, format: string, close: boolean): Reply {
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

/** The shapes of an error (api-facts 1.6): JSON with message, plain text, or nothing at all. */
export function errorReply(error: ApiError, format: string): Reply {
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
