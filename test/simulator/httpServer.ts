import net from 'node:net';
import tls from 'node:tls';
import type { ProxyWorker } from './daemons.ts';
import {
  encodeReply,
  MAX_HEADER_BYTES,
  parseHead,
  wantsKeepAlive,
  type Head,
  type Reply,
} from './httpWire.ts';

/** What becomes of a request: an answer, a cut connection, nothing at all, or nothing until the connection idles out. */
export type Outcome = Reply | 'reset' | 'hang' | 'silence';

/** What the layer asks after the head was read: go on and read the body, or this instead. */
export type Gate = { readBody: true; upload: boolean } | { deny: Reply; needsBody: boolean };

export interface RequestHandler {
  /** The worker of pveproxy that takes a new connection. */
  connect(): ProxyWorker;
  /** Called with the head alone: authentication and everything else that comes before the body. */
  gate(head: Head): Gate;
  handle(head: Head, body: Buffer, worker: ProxyWorker): Promise<Outcome>;
}

export interface HttpServer {
  port: number;
  /** Real ms after which connections opened from now on are closed when idle. */
  setIdleMs(ms: number): void;
  close(): Promise<void>;
}

/** A denied upload larger than this is cut off at once (15-node-fetch-upload-denied-sizes). */
const DENIED_BODY_LIMIT = 520 * 1024;

export interface HttpServerOptions {
  host: string;
  port: number;
  tls: { key: string; cert: string };
  handler: RequestHandler;
  /** How long an idle connection, or a body that does not come, is kept; pveproxy: 5000 ms. */
  idleMs: number;
  /** While it says no, connections are closed without a word, as near as a process comes to a host without power. */
  isThere: () => boolean;
}

/** Listens for TLS and, like pveproxy, answers plain HTTP on the same port with a redirect. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const sockets = new Set<net.Socket>();
  const current = { ...options };
  const secure = tls.createServer(
    { key: options.tls.key, cert: options.tls.cert, ALPNProtocols: ['http/1.1'] },
    (socket) => {
      serveConnection(socket, { ...current });
    },
  );
  secure.on('tlsClientError', () => undefined);
  const listener = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    if (!options.isThere()) {
      socket.destroy();
      return;
    }
    socket.once('data', (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      if (first[0] === 0x16) secure.emit('connection', socket);
      else redirectPlainHttp(socket, first, options);
    });
  });
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(options.port, options.host, resolve);
  });
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return {
    port: address.port,
    setIdleMs: (ms) => {
      current.idleMs = ms;
    },
    close: () =>
      new Promise((resolve) => {
        listener.close(() => {
          resolve();
        });
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function redirectPlainHttp(socket: net.Socket, first: Buffer, options: HttpServerOptions): void {
  const line = /^(\S+) (\S+)/.exec(first.toString('latin1'));
  const host = /\r\nhost: *([^\r\n]+)/i.exec(first.toString('latin1'))?.[1] ?? options.host;
  const safe = line?.[1] === 'GET' || line?.[1] === 'HEAD';
  const [status, reason] = safe ? [301, 'Moved Permanently'] : [308, 'Permanent Redirect'];
  socket.end(
    encodeReply(
      {
        status,
        reason,
        body: Buffer.from(reason),
        extraHeaders: [['Location', `https://${host}${line?.[2] ?? '/'}`]],
      },
      { version: '1.1', keepAlive: true, gzip: false },
    ),
  );
}

function serveConnection(socket: tls.TLSSocket, options: HttpServerOptions): void {
  const { handler } = options;
  const worker = handler.connect();
  let buffered: Buffer = Buffer.alloc(0);
  /** Pieces of a body that is not complete yet: joined once, because bodies are large. */
  let pieces: Buffer[] = [];
  let missing = 0;
  let current: { head: Head; gate: Gate } | null = null;
  let answering = false;
  let ended = false;
  let served = 0;

  socket.setTimeout(options.idleMs);
  socket.on('timeout', () => {
    if (!answering) socket.destroy();
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    ended = true;
  });

  const send = (reply: Reply, head: Head | null): void => {
    if (ended) return;
    served += 1;
    const keepAlive = wantsKeepAlive(head, reply, served);
    const gzip = /\b(gzip|deflate)\b/.test(head?.headers.get('accept-encoding') ?? '');
    socket.write(encodeReply(reply, { version: head?.version ?? '1.0', keepAlive, gzip }));
    answering = false;
    current = null;
    if (keepAlive) {
      advance();
      return;
    }
    // What the client still sends is read and dropped, so that the answer is not lost to a reset.
    hangUp();
  };

  const hangUp = (): void => {
    ended = true;
    buffered = Buffer.alloc(0);
    socket.end();
    socket.setTimeout(1000, () => socket.destroy());
  };

  const idleOut = (): void => {
    answering = true;
    setTimeout(() => socket.destroy(), options.idleMs);
  };

  const answer = (reply: Reply, head: Head): void => {
    answering = true;
    if (reply.delay === undefined) {
      send(reply, head);
      return;
    }
    reply.delay().then(
      () => {
        send(reply, head);
      },
      () => socket.destroy(),
    );
  };

  const run = async (head: Head, body: Buffer): Promise<void> => {
    const outcome = options.isThere() ? await handler.handle(head, body, worker) : 'reset';
    if (outcome === 'reset') {
      socket.destroy();
      return;
    }
    if (outcome === 'hang') return;
    if (outcome === 'silence') idleOut();
    else answer(outcome, head);
  };

  const advance = (): void => {
    if (answering || ended) return;
    if (current === null) {
      const end = buffered.indexOf('\r\n\r\n');
      if (end < 0 && buffered.length <= MAX_HEADER_BYTES) return;
      const parsed = end < 0 ? 'silence' : parseHead(buffered.subarray(0, end).toString('latin1'));
      buffered = buffered.subarray(end + 4);
      if (parsed === 'silence') {
        // pveproxy's handler dies without an answer; the connection idles out (12-raw-header-too-large).
        idleOut();
        return;
      }
      if ('status' in parsed) {
        send(parsed, null);
        return;
      }
      const gate = handler.gate(parsed);
      if ('deny' in gate) {
        if (gate.needsBody && parsed.contentLength > DENIED_BODY_LIMIT) {
          hangUp();
          return;
        }
        if (!gate.needsBody) {
          answer(gate.deny, parsed);
          return;
        }
      }
      current = { head: parsed, gate };
    }
    const { head, gate } = current;
    if (buffered.length < head.contentLength) {
      pieces = [buffered];
      missing = head.contentLength - buffered.length;
      buffered = Buffer.alloc(0);
      return;
    }
    const body = Buffer.from(buffered.subarray(0, head.contentLength));
    buffered = buffered.subarray(head.contentLength);
    if ('deny' in gate) {
      answer(gate.deny, head);
      return;
    }
    answering = true;
    run(head, body).catch(() => socket.destroy());
  };

  socket.on('data', (chunk: Buffer) => {
    if (ended) return;
    if (missing > 0) {
      pieces.push(chunk);
      missing -= chunk.length;
      if (missing > 0) return;
      missing = 0;
      buffered = Buffer.concat(pieces);
      pieces = [];
      advance();
      return;
    }
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    advance();
  });
}
