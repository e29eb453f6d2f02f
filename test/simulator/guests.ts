import http from 'node:http';
import net from 'node:net';

/** The network the guests live in: a /16 of the loopback that belongs to this simulator alone. */
export interface ProxyNetwork {
  /** `127.x`, the first two parts of every address. */
  prefix: string;
  /** The same MAC gets the same address, as from a DHCP server with leases. */
  addressFor(mac: string): string;
  /** Another address from now on, as after the lease was lost. */
  newAddressFor(mac: string): string;
  close(): Promise<void>;
}

/** Port on `<prefix>.0.1` whose binding says: this /16 is taken. */
const CLAIM_PORT = 39_127;

/**
 * Claims a /16 of 127.64.0.0/10 by binding its .0.1, so that two simulators on one machine never meet
 * (design §12). Throws when none of sixty-four is free.
 */
export async function claimNetwork(): Promise<ProxyNetwork> {
  const start = Math.floor(Math.random() * 64);
  for (let offset = 0; offset < 64; offset += 1) {
    const prefix = `127.${64 + ((start + offset) % 64)}`;
    const claim = await bind(`${prefix}.0.1`, CLAIM_PORT);
    if (claim === null) continue;
    const leases = newLeases(prefix);
    return {
      prefix,
      ...leases,
      close: () =>
        new Promise((resolve) => {
          claim.close(() => {
            resolve();
          });
        }),
    };
  }
  throw new Error('no free /16 in 127.64.0.0/10: 64 simulators run on this machine');
}

/** Addresses by MAC below `<prefix>.1.2`; none is given out twice. */
export function newLeases(prefix: string): Pick<ProxyNetwork, 'addressFor' | 'newAddressFor'> {
  const leases = new Map<string, string>();
  let given = 0;
  const newAddressFor = (mac: string): string => {
    const address = `${prefix}.${1 + Math.floor(given / 250)}.${2 + (given % 250)}`;
    given += 1;
    leases.set(mac.toLowerCase(), address);
    return address;
  };
  return {
    newAddressFor,
    addressFor: (mac) => leases.get(mac.toLowerCase()) ?? newAddressFor(mac),
  };
}

async function bind(host: string, port: number): Promise<net.Server | null> {
  const server = net.createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once('error', () => {
      resolve(null);
    });
    server.listen(port, host, () => {
      server.unref();
      resolve(server);
    });
  });
}

export interface GuestProxy {
  close(): void;
}

export interface GuestProxyOptions {
  address: string;
  port: number;
  /** `user:password`; without it nobody is asked. */
  auth: string | null;
  /** Whether it answers 502 to everything, asked at each request. */
  broken?: () => boolean;
  /** Called with every request line, for tests. */
  onRequest?: (line: string) => void;
}

/** The forward proxy inside a booted VM: absolute-form requests and CONNECT, on the VM's own address. */
export async function startGuestProxy(options: GuestProxyOptions): Promise<GuestProxy> {
  const expected =
    options.auth === null ? null : `Basic ${Buffer.from(options.auth).toString('base64')}`;
  const sockets = new Set<net.Socket>();
  const server = http.createServer((request, response) => {
    options.onRequest?.(`${request.method ?? ''} ${request.url ?? ''}`);
    if (expected !== null && request.headers['proxy-authorization'] !== expected) {
      response.writeHead(407, { 'Proxy-Authenticate': 'Basic realm="proxy"' });
      response.end();
      return;
    }
    if (options.broken?.() === true) response.writeHead(502).end();
    else forward(request, response);
  });
  server.on('connect', (request, client: net.Socket, head: Buffer) => {
    options.onRequest?.(`CONNECT ${request.url ?? ''}`);
    client.on('error', () => client.destroy());
    if (expected !== null && request.headers['proxy-authorization'] !== expected) {
      client.end(
        'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="proxy"\r\n\r\n',
      );
      return;
    }
    if (options.broken?.() === true) client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    else tunnel(request.url ?? '', client, head);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.address, resolve);
  });
  server.unref();
  return {
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function forward(request: http.IncomingMessage, response: http.ServerResponse): void {
  const target = URL.canParse(request.url ?? '') ? new URL(request.url ?? '') : null;
  if (target === null || target.protocol !== 'http:') {
    response.writeHead(400).end();
    return;
  }
  const headers = { ...request.headers };
  delete headers['proxy-authorization'];
  delete headers['proxy-connection'];
  const upstream = http.request(
    target,
    { method: request.method ?? 'GET', headers, agent: false },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    },
  );
  upstream.on('error', () => {
    if (response.headersSent) response.destroy();
    else response.writeHead(502).end();
  });
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
}

function tunnel(authority: string, client: net.Socket, head: Buffer): void {
  const match = /^\[?([^\]]+?)\]?:(\d+)$/.exec(authority);
  if (match === null) {
    client.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    return;
  }
  const upstream = net.connect(Number(match[2]), match[1] ?? '', () => {
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    upstream.write(head);
    upstream.pipe(client);
    client.pipe(upstream);
  });
  upstream.on('error', () => {
    client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  client.on('close', () => upstream.destroy());
}
