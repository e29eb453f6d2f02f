import { createHash } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import type { CapturedRequest, Part } from './captures.ts';

/** What came back over the socket. */
export interface Answer {
  version: string;
  status: number;
  reason: string;
  /** Names as sent; of repeated ones the last, as in the captures. */
  headers: Record<string, string>;
  body: string;
}

/** An answer, or the connection closed without one. */
export type Reaction = Answer | 'closed';

/** The secret of every token of the fixture (pve/README). */
export const SECRET = '00000000-0000-4000-8000-000000000001';

export interface Target {
  host: string;
  port: number;
  ca: string;
}

/** Opens a TLS connection, sends the bytes and reads one answer. `onSent` is called once everything was written. */
export async function sendBytes(
  target: Target,
  bytes: Buffer,
  onSent: () => void,
  pausesMs: readonly number[] = [],
): Promise<Reaction> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({
      host: target.host,
      port: target.port,
      ca: target.ca,
      servername: 'localhost',
    });
    let received: Buffer = Buffer.alloc(0);
    const done = (reaction: Reaction): void => {
      resolve(reaction);
      socket.destroy();
    };
    socket.on('secureConnect', () => {
      void writeInPieces(socket, bytes, pausesMs).then(onSent);
    });
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const answer = parseAnswer(received, false);
      if (answer !== null) done(answer);
    });
    socket.on('close', () => {
      done(parseAnswer(received, true) ?? 'closed');
    });
    socket.on('error', (error) => {
      if ('code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE'))
        done('closed');
      else reject(error);
    });
  });
}

async function writeInPieces(
  socket: tls.TLSSocket,
  bytes: Buffer,
  pausesMs: readonly number[],
): Promise<void> {
  const size = Math.ceil(bytes.length / (pausesMs.length + 1));
  for (let piece = 0; piece <= pausesMs.length; piece += 1) {
    const pause = pausesMs[piece - 1];
    if (pause !== undefined) {
      await new Promise((resolve) => {
        setTimeout(resolve, pause);
      });
    }
    if (socket.destroyed) return;
    await new Promise<void>((resolve) => {
      socket.write(bytes.subarray(piece * size, (piece + 1) * size), () => {
        resolve();
      });
    });
  }
}

/** The same over plain TCP. */
export async function sendPlain(port: number, bytes: Buffer): Promise<Reaction> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.write(bytes);
    });
    let received: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
    });
    socket.on('error', reject);
    socket.on('close', () => {
      resolve(parseAnswer(received, true) ?? 'closed');
    });
  });
}

/** `null` while the answer is not complete; without a length it ends with the connection. */
export function parseAnswer(data: Buffer, ended: boolean): Answer | null {
  const end = data.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [statusLine = '', ...lines] = data.subarray(0, end).toString('utf8').split('\r\n');
  const match = /^HTTP\/(\S+) (\d+) ?(.*)$/.exec(statusLine);
  if (match === null) return null;
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(': ');
    headers[line.slice(0, colon)] = line.slice(colon + 2);
  }
  const length = headers['Content-Length'];
  const body = data.subarray(end + 4);
  if (length === undefined ? !ended : body.length < Number(length)) return null;
  return {
    version: match[1] ?? '',
    status: Number(match[2]),
    reason: match[3] ?? '',
    headers,
    body: body.toString('utf8'),
  };
}

export interface Rewrite {
  /** Replaces what the simulation decided differently: UPIDs. */
  text: (text: string) => string;
  secret?: string;
}

/** The bytes of a captured request, as the capturing client sent them. */
export function encodeRequest(captured: CapturedRequest, rewrite: Rewrite): Buffer {
  const headers: Record<string, string> = { Host: '127.0.0.1:8006', ...captured.headers };
  if (captured.authorization !== null) {
    const authorization =
      captured.authorization ?? 'PVEAPIToken=proxy-operator@pve!operator=<secret>';
    headers['Authorization'] = authorization.replace('<secret>', rewrite.secret ?? SECRET);
  }
  let path = rewrite.text(captured.path);
  let body: Buffer = Buffer.alloc(0);
  const parts = captured.multipartParts ?? captured.multipart;
  const form = encodeParams(captured.params ?? {}, rewrite);
  if (parts !== undefined) {
    const type = headers['Content-Type'] ?? 'multipart/form-data; boundary=----simulatorboundary';
    headers['Content-Type'] = type;
    const boundary = /boundary="?([^"]+)"?/.exec(type)?.[1] ?? '';
    body = encodeParts(parts, boundary);
  } else if (captured.rawBody !== undefined) {
    body = Buffer.from(captured.rawBody, 'latin1');
  } else if (form !== '') {
    if (captured.method === 'GET' || captured.method === 'DELETE') {
      path += `${path.includes('?') ? '&' : '?'}${form}`;
    } else {
      headers['Content-Type'] ??= 'application/x-www-form-urlencoded';
      body = Buffer.from(form);
    }
  }
  if (body.length > 0 || parts !== undefined) headers['Content-Length'] = String(body.length);
  const head = [
    `${captured.method} ${path} HTTP/1.1`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'utf8'), body]);
}

function encodeParams(params: NonNullable<CapturedRequest['params']>, rewrite: Rewrite): string {
  const pairs: string[] = [];
  for (const [key, value] of Object.entries(params)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null) continue;
      pairs.push(`${encodeURIComponent(key)}=${encodeURIComponent(rewrite.text(String(item)))}`);
    }
  }
  return pairs.join('&');
}

function encodeParts(parts: readonly Part[], boundary: string): Buffer {
  const chunks: Buffer[] = [];
  const contents = parts.map(partContent);
  for (const { headers, data: captured } of contents) {
    const data = withOwnChecksum(headers, captured, contents);
    chunks.push(Buffer.from(`--${boundary}\r\n${headers.join('\r\n')}\r\n\r\n`, 'utf8'), data);
    chunks.push(Buffer.from('\r\n'));
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(chunks);
}

function partContent(part: Part): PartContent {
  if ('headers' in part) return { headers: part.headers, data: fill(part.data) };
  const disposition = `Content-Disposition: form-data; name="${part.name}"`;
  const headers =
    part.filename === undefined
      ? [disposition]
      : [`${disposition}; filename="${part.filename}"`, 'Content-Type: application/octet-stream'];
  const data =
    part.bytes === undefined ? fill(part.data ?? part.value ?? '') : Buffer.alloc(part.bytes);
  return { headers, data };
}

interface PartContent {
  headers: readonly string[];
  data: Buffer;
}

/** The captures do not say what was in a file, so a checksum that looks like one is replaced by that of our filling. */
function withOwnChecksum(
  headers: readonly string[],
  data: Buffer,
  all: readonly PartContent[],
): Buffer {
  const isNamed = (part: { headers: readonly string[] }, name: string): boolean =>
    part.headers.some((header) => header.includes(`name="${name}"`));
  const algorithm = all.find((part) => isNamed(part, 'checksum-algorithm'))?.data.toString();
  const file = all.find((part) => isNamed(part, 'filename'))?.data;
  const looksReal = new Set(data.toString()).size > 8;
  if (algorithm === undefined || file === undefined || !isNamed({ headers }, 'checksum'))
    return data;
  return looksReal ? Buffer.from(createHash(algorithm).update(file).digest('hex')) : data;
}

/** The captures name only the length of file contents. */
function fill(data: string): Buffer {
  const bytes = /^<(\d+) bytes>$/.exec(data)?.[1];
  return bytes === undefined ? Buffer.from(data) : Buffer.alloc(Number(bytes), 'x');
}
