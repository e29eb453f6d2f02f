/** A desk for the time before Temporal is connected: discovery must not wait for it. */
import type { Desk } from './desk.ts';

/** Calls wait for the connection; only `state` answers at once. Rejects as the connection does. */
export function createLateDesk(connected: Promise<Desk>): Desk {
  let desk: Desk | null = null;
  void connected.then(
    (value) => {
      desk = value;
    },
    () => undefined,
  );
  return {
    ensure: async (proxy) => (await connected).ensure(proxy),
    tell: async (proxy, news) => (await connected).tell(proxy, news),
    tellGone: async (ref, news) => (await connected).tellGone(ref, news),
    running: async () => (await connected).running(),
    state: async () => (desk === null ? 'down' : await desk.state()),
  };
}
