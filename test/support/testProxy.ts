/** A small HTTP proxy and a page behind it, both able to fail the ways real ones do. */
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

export type ProxyBehaviour = 'forward' | 'silent' | 'reset';

/** Forwards absolute-form requests and CONNECT tunnels, on 127.0.0.1. */
export class TestProxy {
  behaviour: ProxyBehaviour = 'forward';
  /** `user:password` it asks for; none by default. */
  credentials: string | null = null;
  /** First lines of the requests it got. */
  readonly seen: string[] = [];
  readonly #server: Server = createServer((request, response) => this.#forward(request, response));
  readonly #sockets = new Set<Socket>();

  constructor() {
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('connect', (request: IncomingMessage, socket: Socket) => {
      this.#tunnel(request, socket);
    });
  }

  async start(port = 0): Promise<number> {
    return await listen(this.#server, port);
  }
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await close(this.#server);
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    this.seen.push(`${request.method} ${request.url}`);
    if (this.behaviour === 'silent') return;
    if (this.behaviour === 'reset') return void request.socket.resetAndDestroy();
    if (!this.#isAllowed(request)) return void response.writeHead(407).end();
    const onward = httpRequest(request.url ?? '', { method: request.method }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, { 'content-type': 'text/plain' });
      answer.pipe(response);
    });
    onward.on('error', () => response.writeHead(503).end('the target does not answer'));
    onward.end();
  }

  #tunnel(request: IncomingMessage, socket: Socket): void {
    this.seen.push(`CONNECT ${request.url}`);
    if (this.behaviour === 'silent') return;
    if (!this.#isAllowed(request)) return void socket.end('HTTP/1.1 407 Auth\r\n\r\n');
    const [host = '', port = ''] = (request.url ?? '').split(':');
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.end('HTTP/1.1 503 No\r\n\r\n'));
    socket.on('close', () => onward.destroy());
  }

  #isAllowed({ headers }: IncomingMessage): boolean {
    if (this.credentials === null) return true;
    const expected = `Basic ${Buffer.from(this.credentials).toString('base64')}`;
    return headers['proxy-authorization'] === expected;
  }
}

/** A page on 127.0.0.1 that answers with `status`. */
export class TestPage {
  status = 204;
  readonly #server = createServer((_request, response) => response.writeHead(this.status).end());

  async start(port = 0): Promise<number> {
    return await listen(this.#server, port);
  }
  async stop(): Promise<void> {
    await close(this.#server);
  }
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
