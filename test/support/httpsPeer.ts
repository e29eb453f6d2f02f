/** An HTTPS server that records what reaches it and answers as the test says. Nothing of ours is imported. */
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** One request as it arrived. */
export interface SeenRequest {
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** Number of the connection it came over, from 1. */
  connection: number;
}

/** Answers one request; may also destroy the socket or never answer. */
export type Answer = (request: SeenRequest, response: ServerResponse) => void;

/** Starts on a free port of 127.0.0.1; all connections are cut by `close`. */
export interface HttpsPeer {
  port: number;
  /** `https://127.0.0.1:<port>`. */
  url: string;
  requests: SeenRequest[];
  /** Connections opened so far. */
  opened(): number;
  /** Connections open now. */
  open(): number;
  answer: Answer;
  close(): Promise<void>;
}

/** `data` as the API wraps it. */
export function answerData(response: ServerResponse, data: unknown): void {
  const body = JSON.stringify({ data });
  response.writeHead(200, 'OK', {
    'content-type': 'application/json;charset=UTF-8',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** A server with this certificate; `answer` may be replaced at any time. */
export async function startHttpsPeer(
  tls: { key: string; cert: string; ALPNProtocols?: string[] },
  answer: Answer,
): Promise<HttpsPeer> {
  const sockets = new Map<TLSSocket, number>();
  let count = 0;
  const numberOf = (request: IncomingMessage): number => {
    for (const [socket, number] of sockets) if (socket === request.socket) return number;
    return 0;
  };
  const server = createServer({ ...tls, keepAliveTimeout: 60_000 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A connection cut by the client is what some tests want.
    request.on('error', () => undefined);
    request.on('end', () => {
      const seen: SeenRequest = {
        method: request.method ?? '',
        url: request.url ?? '',
        headers: Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        ),
        body: Buffer.concat(chunks),
        connection: numberOf(request),
      };
      peer.requests.push(seen);
      peer.answer(seen, response);
    });
  });
  server.on('secureConnection', (socket) => {
    count += 1;
    sockets.set(socket, count);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port');
  const peer: HttpsPeer = {
    port: address.port,
    url: `https://127.0.0.1:${address.port}`,
    requests: [],
    opened: () => count,
    open: () => sockets.size,
    answer,
    close: async () => {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      server.closeAllConnections();
      for (const socket of sockets.keys()) socket.destroy();
      await closed;
    },
  };
  return peer;
}
