/** What the controller asks of Temporal. Every call may be repeated; none waits for a workflow. */
import type { DesiredChanged } from '../workflows/contract/messages.ts';
import type { ProxyRef } from '../workflows/contract/proxy.ts';

/** A Proxy as far as starting its run needs it. */
export interface ProxyIdentity {
  ref: ProxyRef;
  /** `null` for External. */
  provider: string | null;
}

/** Who is there: Temporal itself, and a worker that polls for workflow tasks. */
export type DeskState = 'up' | 'noWorkers' | 'down';

export interface Desk {
  /** Starts a run unless one is running. */
  ensure(proxy: ProxyIdentity): Promise<void>;
  /** Starts a run unless one is running, and signals it. */
  tell(proxy: ProxyIdentity, news: DesiredChanged): Promise<void>;
  /** Signals the run if there is one; starts none. */
  tellGone(ref: ProxyRef, news: DesiredChanged): Promise<void>;
  /** UIDs whose run Temporal lists as running: a hint that may be seconds old. */
  running(): Promise<ReadonlySet<string>>;
  /** Does not throw. */
  state(): Promise<DeskState>;
}
