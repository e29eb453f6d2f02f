/** What idle Proxies cost Proxmox VE: the requests of a stretch of time taken apart, and what `npm run bench:idle` prints. Pure. */
import { z } from 'zod';

export const timedRequestSchema = z.object({
  /** Epoch ms. */
  time: z.number(),
  method: z.string(),
  path: z.string(),
});
export type TimedRequest = z.infer<typeof timedRequestSchema>;

/** From the beginning of one round of checks to that of another. */
export interface Stretch {
  fromMs: number;
  toMs: number;
  requests: TimedRequest[];
}

/** All nodes are checked at once, and the rounds are further apart than this. */
const sameRoundMs = 10_000;

/** When the rounds of checks in this log began (epoch ms): with a request for the version, which nobody else sends. */
export function checkRounds(log: readonly TimedRequest[]): number[] {
  const versions = log.filter(({ path }) => path === '/version').map(({ time }) => time);
  return versions.filter((time, index) => time - (versions[index - 1] ?? -Infinity) > sameRoundMs);
}

/**
 * The first `rounds` whole rounds of checks in a log and everything else that was asked meanwhile; `null` while the
 * round after them has not begun.
 */
export function wholeRounds(log: readonly TimedRequest[], rounds: number): Stretch | null {
  const begun = checkRounds(log);
  const [fromMs, toMs] = [begun[0], begun[rounds]];
  if (fromMs === undefined || toMs === undefined) return null;
  const requests = log.filter(({ time }) => time >= fromMs && time < toMs);
  return { fromMs, toMs, requests };
}

/** Method and path without what tells one node, VM or storage from another. */
export function kindOf({ method, path }: TimedRequest): string {
  const kind = path
    .replace(/^\/nodes\/[^/]+/, '/nodes/…')
    .replace(/\/qemu\/\d+/, '/qemu/…')
    .replace(/\/storage\/[^/]+/, '/storage/…');
  return `${method} ${kind}`;
}

const agentKinds = [
  'GET /nodes/…/qemu/…/config',
  'GET /nodes/…/qemu/…/agent/network-get-interfaces',
] as const;
const nodesKind = 'GET /nodes';
/** The one round of the collection in each stretch lists the nodes, too. */
const nodesListedByCollection = 1;

export interface IdleCost {
  size: number;
  /** Length of the stretch. */
  minutes: number;
  /** Requests by kind. */
  counts: ReadonlyMap<string, number>;
  /** Requests of agent re-checks: each reads the config of a VM, then asks its agent. */
  recheckRequests: number;
  /** All other requests. */
  otherRequests: number;
  /** Times the watch listed all VMs. */
  watchRounds: number;
  /** Events that were added to the histories of all Proxies meanwhile. */
  eventsAdded: number;
  /** Resident memory in MiB: when the Proxies had just been made, and of a process started since. */
  memory: Record<'worker' | 'controller', { made: number; restarted: number }>;
}

export function costOf(
  stretch: Stretch,
  { size, eventsAdded, memory }: Pick<IdleCost, 'size' | 'eventsAdded' | 'memory'>,
): IdleCost {
  const counts = new Map<string, number>();
  for (const request of stretch.requests) {
    const kind = kindOf(request);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const [configs = 0, agents = 0] = agentKinds.map((kind) => counts.get(kind) ?? 0);
  // A config that was read for another reason counts with the others.
  const recheckRequests = agents + Math.min(agents, configs);
  return {
    size,
    eventsAdded,
    memory,
    minutes: (stretch.toMs - stretch.fromMs) / 60_000,
    counts,
    recheckRequests,
    otherRequests: stretch.requests.length - recheckRequests,
    watchRounds: (counts.get(nodesKind) ?? 0) - nodesListedByCollection,
  };
}

export interface IdleCircumstances {
  rounds: number;
  cpus: number;
  /** Load average of the last minute, before and after. */
  loadBefore: number;
  loadAfter: number;
}

/** What is wanted of the requests a minute of the most Proxies, compared with those of the fewest. */
const wantedRatio = 1.1;

/** Lines of the report, the ratio last. `costs` in order of size, at least one. */
export function idleReport(costs: readonly IdleCost[], circumstances: IdleCircumstances): string[] {
  const [fewest, most] = [costs[0], costs.at(-1)];
  if (fewest === undefined || most === undefined) throw new Error('nothing was measured');
  const { rounds, cpus, loadBefore, loadAfter } = circumstances;
  const ratio = perMinute(most) / perMinute(fewest);
  const eventsAdded = costs.reduce((sum, cost) => sum + cost.eventsAdded, 0);
  const kinds = [...new Set(costs.flatMap(({ counts }) => [...counts.keys()]))].sort();
  const line = (label: string, tell: (cost: IdleCost) => string): string =>
    `  ${label.padEnd(58)}${costs.map((cost) => tell(cost).padStart(9)).join('')}`;
  const mib = (label: string, tell: (cost: IdleCost) => number): string =>
    line(label, (cost) => tell(cost).toFixed(0));
  return [
    `${rounds} rounds of checks and one of the collection at each size; ${cpus} CPUs, load ` +
      `${loadBefore.toFixed(1)} before and ${loadAfter.toFixed(1)} after.`,
    '',
    line('idle Proxies', ({ size }) => String(size)),
    line('requests a minute without agent re-checks', (cost) => perMinute(cost).toFixed(1)),
    line('agent re-checks: requests a minute', ({ recheckRequests, minutes }) =>
      (recheckRequests / minutes).toFixed(1),
    ),
    line('seconds between two rounds of the watch', ({ minutes, watchRounds }) =>
      ((60 * minutes) / watchRounds).toFixed(1),
    ),
    line('events added to all histories', (cost) => String(cost.eventsAdded)),
    '',
    'memory (RSS, MiB)',
    mib('worker, having made them', ({ memory }) => memory.worker.made),
    mib('worker, started since', ({ memory }) => memory.worker.restarted),
    mib('controller, having seen them made', ({ memory }) => memory.controller.made),
    mib('controller, started since', ({ memory }) => memory.controller.restarted),
    '',
    'requests by kind',
    ...kinds.map((kind) => line(kind, ({ counts }) => String(counts.get(kind) ?? 0))),
    '',
    verdict(`events added: ${eventsAdded} (wanted: 0)`, eventsAdded === 0),
    verdict(`ratio of requests (wanted: at most ${wantedRatio.toFixed(2)})`, ratio <= wantedRatio),
    `ratio ${most.size}:${fewest.size} = ${ratio.toFixed(2)}`,
  ];
}

function perMinute({ otherRequests, minutes }: IdleCost): number {
  return otherRequests / minutes;
}

function verdict(what: string, met: boolean): string {
  return `${met ? 'met   ' : 'MISSED'}  ${what}`;
}
