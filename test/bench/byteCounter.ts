/** A relay in front of a server that counts what comes back through it. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export class ByteCounter {
  /** Bytes from the server, TLS included. */
  received = 0;
  port = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: URL) {
    this.#server = createServer((near) => {
      const far = connect(Number(target.port), target.hostname);
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('close', () => this.#sockets.delete(socket));
        socket.on('error', () => {
          near.destroy();
          far.destroy();
        });
      }
      far.on('data', (chunk: Buffer) => {
        this.received += chunk.length;
      });
      near.pipe(far).pipe(near);
    });
  }

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the relay has no port');
    this.port = address.port;
    return this;
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
