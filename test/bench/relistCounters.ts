/** What `bench:relist` puts between the controller and both of its servers to count. */
import { z } from 'zod';
import type { KubernetesClient } from '../../activities/kubernetes/client.ts';
import { listProxies } from '../../activities/kubernetes/proxyList.ts';
import type { Desk, DeskState } from '../../controller/desk.ts';
import type { ByteCounter } from './byteCounter.ts';

/** One full list. */
export interface ListTimes {
  requests: number;
  /** From the first request until the last answer was parsed. */
  tookMs: number;
  bytes: number;
  ended: boolean;
}

const page = z.object({ metadata: z.object({ continue: z.string().optional() }) });

/** UIDs of all Proxies. Throws when the API server does not list them (yet). */
export async function proxyUids(client: KubernetesClient): Promise<string[]> {
  const { objects } = await listProxies(client, 50);
  return objects.map(({ metadata }) => metadata.uid);
}

/** The client, with every full list noted in `times`, newest last. */
export function countingClient(
  inner: KubernetesClient,
  counter: ByteCounter,
  times: ListTimes[],
): KubernetesClient {
  let began = { ms: 0, bytes: 0 };
  return {
    ...inner,
    send: async (request) => {
      if (request.query?.['continue'] === undefined) {
        began = { ms: performance.now(), bytes: counter.received() };
        times.push({ requests: 0, tookMs: 0, bytes: 0, ended: false });
      }
      const answer = await inner.send(request);
      const current = times.at(-1);
      if (current === undefined) return answer;
      current.requests += 1;
      current.tookMs = performance.now() - began.ms;
      current.bytes = counter.received() - began.bytes;
      current.ended = (page.parse(answer.body).metadata.continue ?? '') === '';
      return answer;
    },
  };
}

/** A Temporal in which every Proxy has its run; it counts what it is asked. */
export class CountingDesk implements Desk {
  starts = 0;
  signals = 0;
  readonly #running: ReadonlySet<string>;

  constructor(uids: readonly string[]) {
    this.#running = new Set(uids);
  }

  ensure(): Promise<void> {
    this.starts += 1;
    return Promise.resolve();
  }
  tell(): Promise<void> {
    this.signals += 1;
    return Promise.resolve();
  }
  tellGone(): Promise<void> {
    this.signals += 1;
    return Promise.resolve();
  }
  running(): Promise<ReadonlySet<string>> {
    return Promise.resolve(this.#running);
  }
  state(): Promise<DeskState> {
    return Promise.resolve('up');
  }
}
