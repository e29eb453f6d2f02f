/** What the proxies of `bench:probes` are like, and what their probes were like. Pure. */

export interface Arrival {
  ip: string;
  /** Epoch ms. */
  atMs: number;
}

export type PeerKind = 'quick' | 'slow' | 'hangs';

/** Of ten, one hangs and one is slow. */
export function kindOf(number: number): PeerKind {
  if (number % 10 === 3) return 'hangs';
  return number % 10 === 7 ? 'slow' : 'quick';
}

export function ipOf(number: number): string {
  return `127.66.${number >> 8}.${number & 255}`;
}

export function numberOf(ip: string): number {
  const [, , high = '0', low = '0'] = ip.split('.');
  return Number(high) * 256 + Number(low);
}

/** What was measured with so many Proxies. */
export interface ProbeCost {
  proxies: number;
  /** Probes that arrived per second, of all kinds. */
  perSecond: number;
  /** Lateness of each probe of a proxy that answers (ms): from its slot until the proxy had the request. */
  latenessMs: readonly number[];
  /** Probes of those that should have come and did not. */
  missing: number;
  heapMiB: number;
  residentMiB: number;
  /** Part of the time the prober's thread was busy, 0 to 1. */
  busy: number;
}

/** How long after its slot a probe arrived (ms). `share`: the address's place in every interval. */
export function latenessOf(atMs: number, intervalMs: number, share: number): number {
  const sinceMs = atMs - share * intervalMs;
  const lateMs = ((sinceMs % intervalMs) + intervalMs) % intervalMs;
  // Timers fire up to a millisecond early: then it seems to be a whole interval late.
  return lateMs > intervalMs - 5 ? 0 : lateMs;
}

/** The value that so much of them (0 to 1) do not exceed; 0 of none. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
}

/** Lateness at the 99th percentile that is wanted whatever the number of Proxies: a hundredth of the shortest usual interval. */
const wantedMs = 300;

/** Lines of the report, verdict and ratio last. */
export function probeReport(costs: readonly ProbeCost[], circumstances: string): string[] {
  const row = (label: string, of: (cost: ProbeCost) => string): string =>
    `  ${label.padEnd(44)}${costs.map((cost) => of(cost).padStart(10)).join('')}`;
  const ms = (part: number) => (cost: ProbeCost) => percentile(cost.latenessMs, part).toFixed(1);
  const first = costs.at(0);
  const last = costs.at(-1);
  if (!first || !last) return ['nothing was measured'];
  const [few, many] = [percentile(first.latenessMs, 0.99), percentile(last.latenessMs, 0.99)];
  const met = many < wantedMs && last.missing === 0;
  return [
    circumstances,
    '',
    row('Proxies', ({ proxies }) => String(proxies)),
    row('probes per second', ({ perSecond }) => perSecond.toFixed(1)),
    row('lateness of those that answer, median (ms)', ms(0.5)),
    row('  99th percentile', ms(0.99)),
    row('  greatest', ms(1)),
    row('probes that did not come', ({ missing }) => String(missing)),
    row('the process busy (%)', ({ busy }) => (busy * 100).toFixed(1)),
    row('its heap (MiB)', ({ heapMiB }) => heapMiB.toFixed(1)),
    row('resident (MiB)', ({ residentMiB }) => residentMiB.toFixed(1)),
    '',
    `${met ? 'met   ' : 'MISSED'}  lateness with ${last.proxies} Proxies: ${many.toFixed(1)} ms at the 99th percentile, ` +
      `${last.missing} missing (wanted: under ${wantedMs} ms, 0)`,
    `ratio ${last.proxies}:${first.proxies} = ${(many / Math.max(0.1, few)).toFixed(2)} (${many.toFixed(1)} ms : ${few.toFixed(1)} ms at the 99th percentile)`,
  ];
}
