/** The way to a simulator that can be cut: while it is, connections are refused as by a host that is down. */
import { startRelay, type Relay } from '../../support/relay.ts';

export class Cable {
  /** Where it begins, on 127.0.0.1. */
  readonly port: number;
  #relay: Relay | undefined;

  constructor(port: number) {
    this.port = port;
  }

  /** Forwards to that port of 127.0.0.1. */
  async plugIn(target: number): Promise<void> {
    this.#relay = await startRelay({ host: '127.0.0.1', port: target }, { port: this.port });
  }

  /** Refuses new connections and cuts those there are. May be called twice. */
  unplug(): void {
    void this.#relay?.stop();
    this.#relay = undefined;
  }
}
