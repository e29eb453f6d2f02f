/** What `npm run bench:create` prints. Pure. */
import { median } from './intervals.ts';
import type { Measured, SeenRequest } from './life.ts';

export interface Circumstances {
  timeScale: number;
  cpus: number;
  /** Load average of the last minute, before and after. */
  loadBefore: number;
  loadAfter: number;
}

/** The figures that are wanted. */
const wantedOverheadMs = 1_000;
const wantedEvents = 260;
const methods = ['GET', 'POST', 'PUT', 'DELETE'];

/** Lines of the report, verdicts last. */
export function report(lives: readonly Measured[], circumstances: Circumstances): string[] {
  const { timeScale, cpus, loadBefore, loadAfter } = circumstances;
  const of = (pick: (life: Measured) => number): number => median(lives.map(pick));
  const overheadMs = of((life) => life.overheadMs);
  const events = of((life) => life.createEvents + life.deleteEvents);
  return [
    `${lives.length} creates and deletes in sequence; the simulator takes ${timeScale} × real times; ` +
      `${cpus} CPUs, load ${loadBefore.toFixed(1)} before and ${loadAfter.toFixed(1)} after. Medians:`,
    '',
    `create, from the request to the status Ready   ${seconds(of((life) => life.createMs))}`,
    `  of which tasks of Proxmox                    ${seconds(of((life) => life.tasksMs))}`,
    `           boot of the guest                   ${seconds(of((life) => life.bootMs))}`,
    `           agent up, not yet asked (every 5 s) ${seconds(of((life) => life.agentMs))}`,
    `           overhead: all the rest              ${seconds(overheadMs)}`,
    `delete, from the signal to the workflow's end  ${seconds(of((life) => life.deleteMs))}`,
    `  of which overhead                            ${seconds(of((life) => life.deleteOverheadMs))}`,
    '',
    'overhead of a create by step (ms)                 median     max',
    ...stepLines(lives),
    '',
    'requests to Proxmox                               create  delete',
    ...requestLines(lives),
    '',
    'history events                                    create  delete',
    row(
      '',
      of((life) => life.createEvents),
      of((life) => life.deleteEvents),
    ),
    '',
    verdict(
      'median overhead of a create',
      `${(overheadMs / 1_000).toFixed(2)} s`,
      'under 1 s on an idle machine',
      overheadMs < wantedOverheadMs,
    ),
    verdict(
      'events of a create and its delete',
      `${events}`,
      `at most ${wantedEvents}`,
      events <= wantedEvents,
    ),
  ];
}

function stepLines(lives: readonly Measured[]): string[] {
  const labels = [...new Set(lives.flatMap((life) => [...life.overhead.keys()]))];
  return labels
    .map((label) => ({ label, values: lives.map((life) => life.overhead.get(label) ?? 0) }))
    .filter(({ values }) => Math.max(...values) > 0)
    .map(({ label, values }) => row(label, Math.round(median(values)), Math.max(...values)));
}

function requestLines(lives: readonly Measured[]): string[] {
  const line = (label: string, counts: (seen: SeenRequest) => boolean): string =>
    row(
      label,
      median(lives.map((life) => life.createRequests.filter(counts).length)),
      median(lives.map((life) => life.deleteRequests.filter(counts).length)),
    );
  const isTaskPoll = ({ method, path }: SeenRequest): boolean =>
    method === 'GET' && /\/tasks\/UPID:.*\/status$/.test(path);
  return [
    ...methods.map((method) => line(method, (seen) => seen.method === method)),
    line('  GET that look at a task', isTaskPoll),
    line('all', () => true),
  ];
}

function verdict(what: string, got: string, wanted: string, met: boolean): string {
  return `${met ? 'met   ' : 'MISSED'}  ${what}: ${got} (wanted: ${wanted})`;
}

function row(label: string, first: number, second: number): string {
  return `  ${label.padEnd(46)}${String(first).padStart(8)}${String(second).padStart(8)}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2).padStart(7)} s`;
}
