/** A relay in front of a server that counts what comes back through it. */
import { startRelay, type Relay } from '../support/relay.ts';

export interface ByteCounter extends Relay {
  /** Bytes from the server so far, TLS included. */
  received(): number;
}

/** In front of the server with that URL. */
export async function startByteCounter({ hostname, port }: URL): Promise<ByteCounter> {
  let received = 0;
  const onAnswer = (chunk: Buffer): void => {
    received += chunk.length;
  };
  const relay = await startRelay({ host: hostname, port: Number(port) }, { onAnswer });
  return { ...relay, received: () => received };
}
