/** What `npm run bench:relist` prints. Pure. */
import { median } from './intervals.ts';
import type { ListTimes } from './relistCounters.ts';

export interface RelistCost {
  proxies: number;
  /** From the start of the controller until everything was read for the first time. */
  readyMs: number;
  lists: readonly ListTimes[];
  /** Of the controller, per list, what it does besides included. */
  cpuMs: number;
  /** The longest time nothing else was done. */
  blockedMs: number;
  heapMiB: number;
  residentMiB: number;
  /** Asked of Temporal, all in all. */
  starts: number;
  signals: number;
  secondsUp: number;
}

/** Each run is made sure of once an hour; chance spreads them unevenly over some seconds. */
function startsWanted({ proxies, secondsUp }: RelistCost): number {
  const expected = (proxies * secondsUp) / 3_600;
  return Math.ceil(expected + 4 * Math.sqrt(expected) + 1);
}

/** Lines of the report, verdict and ratio last. */
export function relistReport(costs: readonly RelistCost[], circumstances: string): string[] {
  const row = (label: string, of: (cost: RelistCost) => string): string =>
    `  ${label.padEnd(46)}${costs.map((cost) => of(cost).padStart(12)).join('')}`;
  const of = (cost: RelistCost, pick: (list: ListTimes) => number): number =>
    median(cost.lists.map(pick));
  const requests = (cost: RelistCost): number => of(cost, (list) => list.requests);
  const bytes = (cost: RelistCost): number => of(cost, (list) => list.bytes);
  const tookMs = (cost: RelistCost): number => of(cost, (list) => list.tookMs);
  const [first, last] = [costs.at(0), costs.at(-1)];
  if (!first || !last) return ['nothing was measured'];
  const ratio = (pick: (cost: RelistCost) => number): string =>
    (pick(last) / Math.max(0.001, pick(first))).toFixed(2);
  const met = costs.every((cost) => cost.signals === 0 && cost.starts <= startsWanted(cost));
  return [
    circumstances,
    '',
    row('Proxies', ({ proxies }) => String(proxies)),
    row('ready after (ms)', ({ readyMs }) => readyMs.toFixed(0)),
    row('requests of a list', (cost) => String(requests(cost))),
    row('bytes of a list (KiB)', (cost) => (bytes(cost) / 1_024).toFixed(0)),
    row('time of a list (ms)', (cost) => tookMs(cost).toFixed(0)),
    row('processor time of a list (ms)', ({ cpuMs }) => cpuMs.toFixed(0)),
    row('longest block of the event loop (ms)', ({ blockedMs }) => blockedMs.toFixed(0)),
    row('heap afterwards (MiB)', ({ heapMiB }) => heapMiB.toFixed(1)),
    row('resident (MiB)', ({ residentMiB }) => residentMiB.toFixed(0)),
    row('signals to workflows, all lists', ({ signals }) => String(signals)),
    row('runs made sure of (each once an hour)', ({ starts }) => String(starts)),
    '',
    `${met ? 'met   ' : 'MISSED'}  signals for unchanged Proxies: ${costs.map(({ signals }) => signals).join(', ')} (wanted: 0); ` +
      `runs made sure of: ${costs.map(({ starts }) => starts).join(', ')} (wanted: at most ${costs.map(startsWanted).join(', ')})`,
    `ratio ${last.proxies}:${first.proxies} = ${ratio(requests)} in requests, ${ratio(bytes)} in bytes, ${ratio(tookMs)} in time`,
  ];
}
