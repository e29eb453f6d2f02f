/** The way to a simulator that can be cut: while it is, connections are refused as by a host that is down. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

export class Cable {
  /** Where it begins, on 127.0.0.1. */
  readonly port: number;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(port: number) {
    this.port = port;
  }

  /** Forwards to that port of 127.0.0.1. */
  async plugIn(target: number): Promise<void> {
    const server = createServer((near) => {
      const far = connect(target, '127.0.0.1');
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('close', () => this.#sockets.delete(socket));
        socket.on('error', () => {
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
    this.#server = server;
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
  }

  /** Refuses new connections and cuts those there are. May be called twice. */
  unplug(): void {
    this.#server?.close();
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }
}
