import { gzipSync } from 'node:zlib';

/**
 * pveproxy's HTTP layer, written on the bare TLS socket: node:http would answer where pveproxy stays silent (too many
 * headers, Expect: 100-continue), would add headers of its own and knows no `506` for HTTP/2 (12-raw-*).
 */
export interface Head {
  method: string;
  /** Request target as sent, query included. */
  target: string;
  version: string;
  /** Names in lower case. */
  headers: ReadonlyMap<string, string>;
  contentLength: number;
}

export interface Reply {
  status: number;
  reason: string;
  body: Buffer;
  contentType?: string;
  /** 401, 595 and the like are sent without a Content-Length (01-auth-no-token). */
  omitLength?: boolean;
  extraHeaders?: readonly (readonly [string, string])[];
  close?: boolean;
  /** Waited for before sending: the 3 s of a failed login. */
  delay?: () => Promise<void>;
  /** pvedaemon's own `Connection: close` shows in front of ours (15-node-fetch: `close, Keep-Alive`). */
  upstreamClose?: boolean;
}

export const MAX_HEADER_BYTES = 8192;
const MAX_HEADERS = 63;
const REQUESTS_PER_CONNECTION = 100;

/** A request's head; an answer to what is none, or `silence` where pveproxy says nothing. */
export function parseHead(text: string): Head | Reply | 'silence' {
  const [requestLine = '', ...lines] = text.split('\r\n');
  const match = /^(\S+) (\S+) HTTP\/(\d+)\.(\d+)$/.exec(requestLine);
  if (match === null) return plainReply(506, 'http protocol version not supported');
  const [, method = '', target = '', major = '', minor = ''] = match;
  if (major !== '1') {
    return plainReply(506, `http protocol version ${major}.${minor} not supported`);
  }
  if (text.length > MAX_HEADER_BYTES || lines.length > MAX_HEADERS) return 'silence';
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue;
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trimStart());
  }
  const length = Number(headers.get('content-length') ?? 0);
  return {
    method,
    target,
    version: `1.${minor}`,
    headers,
    contentLength: Number.isInteger(length) && length > 0 ? length : 0,
  };
}

/** A reply of the HTTP layer: the reason is the body. */
export function plainReply(status: number, reason: string, body = reason): Reply {
  return { status, reason, body: Buffer.from(body), close: true };
}

/** Does the connection stay open after this answer? */
export function wantsKeepAlive(head: Head | null, reply: Reply, served: number): boolean {
  if (head === null || reply.close === true || reply.status >= 400) return false;
  if (served >= REQUESTS_PER_CONNECTION) return false;
  const connection = (head.headers.get('connection') ?? '').toLowerCase();
  if (head.version === '1.0') return connection.includes('keep-alive');
  return !connection.includes('close');
}

/** The bytes of an answer. */
export function encodeReply(
  reply: Reply,
  wire: { version: string; keepAlive: boolean; gzip: boolean },
): Buffer {
  const date = new Date().toUTCString();
  const compress = wire.gzip && reply.body.length > 1024 && reply.contentType !== undefined;
  const body = compress ? gzipSync(reply.body) : reply.body;
  const lines = [
    `HTTP/${wire.version} ${reply.status} ${reply.reason}`,
    'Cache-Control: max-age=0',
    ...(reply.upstreamClose === true && wire.keepAlive ? ['Connection: close'] : []),
    `Connection: ${wire.keepAlive ? 'Keep-Alive' : 'close'}`,
    `Date: ${date}`,
    'Pragma: no-cache',
    ...(reply.extraHeaders ?? []).map(([name, value]) => `${name}: ${value}`),
    'Server: pve-api-daemon/3.0',
  ];
  if (compress) lines.push('Content-Encoding: gzip');
  if (reply.omitLength !== true) lines.push(`Content-Length: ${body.length}`);
  if (reply.contentType !== undefined) lines.push(`Content-Type: ${reply.contentType}`);
  lines.push(`Expires: ${date}`, '', '');
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'utf8'), body]);
}
