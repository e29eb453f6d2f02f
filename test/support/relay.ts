/** A way to a server, by a port of its own on 127.0.0.1, that can be cut. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface Relay {
  port: number;
  /** Refuses new connections and cuts those there are. */
  stop(): Promise<void>;
  /** Nothing comes back any more on the connections there are; they stay open. */
  hold(): void;
}

export interface RelayOptions {
  /** Absent: a free one. */
  port?: number;
  /** Told of every piece that comes back from the server. */
  onAnswer?: (chunk: Buffer) => void;
}

/** Forwards to that server, byte by byte. */
export async function startRelay(
  target: { host: string; port: number },
  { port = 0, onAnswer }: RelayOptions = {},
): Promise<Relay> {
  const sockets = new Set<Socket>();
  const answering = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => {
        near.destroy();
        far.destroy();
      });
    }
    if (onAnswer) far.on('data', onAnswer);
    near.pipe(far).pipe(near);
    answering.add(far);
    far.on('close', () => answering.delete(far));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the relay has no port');
  return {
    port: address.port,
    hold: () => {
      for (const far of answering) far.unpipe().resume();
    },
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
