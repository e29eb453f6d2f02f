import { setTimeout as realDelay } from 'node:timers/promises';
import { parseUpid } from '../tasks.ts';
import type { Capture } from './captures.ts';
import { passing, type Lab } from './lab.ts';
import { differences } from './normalise.ts';
import { encodeRequest, sendBytes } from './wire.ts';

/** Two clones of one VMID on two nodes: both are accepted, one of them is made. Who wins is chance. */
export async function replayRace(
  lab: Lab,
  capture: Extract<Capture, { kind: 'race' }>,
): Promise<string[]> {
  const newid = Number(/newid (\d+)/.exec(capture.note)?.[1]);
  const expected: unknown[] = [];
  const actual: unknown[] = [];
  // The last one first, as it went: later captures go on with its VM.
  for (const { response, task } of Object.values(capture.results).toReversed()) {
    const upid = parseUpid(/"data":"(UPID:[^"]+)"/.exec(response.body ?? '')?.[1] ?? '');
    const node = upid?.node ?? '';
    const path = `/api2/json/nodes/${node}/qemu/${upid?.id ?? ''}/clone`;
    const bytes = encodeRequest(
      { method: 'POST', path, params: { newid } },
      { text: (text) => text },
    );
    const { reaction } = await lab.exchange(node, bytes);
    const own =
      reaction === 'closed' ? '' : (/"data":"(UPID:[^"]+)"/.exec(reaction.body)?.[1] ?? '');
    const ownNode = parseUpid(own)?.node;
    expected.push({ status: response.statusLine, exit: anyNode(task.exitstatus), node });
    actual.push({
      status: reaction === 'closed' ? 'closed' : `HTTP/1.1 ${reaction.status} ${reaction.reason}`,
      exit: own,
      node: ownNode,
    });
  }
  for (const entry of actual) {
    if (typeof entry !== 'object' || entry === null || !('exit' in entry)) continue;
    const upid = String(entry.exit);
    await lab.ended(upid);
    Object.assign(entry, { exit: anyNode(lab.simulator.core.tasks.find(upid)?.exitstatus ?? '') });
  }
  return differences(expected, actual, 'outcomes');
}

function anyNode(text: string): string {
  return text.replace(/nodes\/[^/]+\//, 'nodes/<node>/');
}

/** How many of the captured writes may have had another fate: which worker takes what is chance. */
const CHANCE = 2;

/** Writes that wait for a lock in each of pvedaemon's three workers, and what others see meanwhile. */
export async function replayBlocked(
  lab: Lab,
  capture: Extract<Capture, { kind: 'blocked' }>,
  ca: string,
): Promise<string[]> {
  const { simulator, clock } = lab;
  const vmid = /lock-(\d+)\.conf/.exec(JSON.stringify(capture.results))?.[1] ?? '';
  simulator.holdLock(`/var/lock/qemu-server/lock-${vmid}.conf`, 120, 'pve1');
  const { hostname, port } = new URL(simulator.url);
  const send = (
    method: string,
    path: string,
    params: Record<string, string> = {},
  ): Promise<unknown> => {
    const bytes = encodeRequest(
      { method, path: `/api2/json${path}`, params },
      { text: (text) => text },
    );
    return sendBytes({ host: hostname, port: Number(port), ca }, bytes, () => undefined);
  };
  const writes = capture.results.filter(({ n }) => typeof n === 'number');
  const before = simulator.requests.length;
  const arrived = async (count: number): Promise<void> => {
    while (simulator.requests.length < before + count) await realDelay(1);
  };
  const sent = writes.map(() => send('PUT', `/nodes/pve1/qemu/${vmid}/config`, { onboot: '1' }));
  await arrived(writes.length);
  await clock.advanceTo(clock.now() + 500);
  const read = '/nodes/pve1/qemu/9001/status/current';
  sent.push(send('GET', read), send('GET', '/version'));
  await arrived(writes.length + 2);
  await passing(lab, Promise.all(sent));
  await passing(lab, send('GET', read));
  const own = simulator.requests.slice(before);
  const answers = own.filter(({ method }) => method === 'PUT');
  const seconds = (path: string): number[] =>
    own.filter((request) => request.path === path).map(({ durationMs }) => durationMs / 1000);
  const [blockedRead = 0, laterRead = 0] = seconds(read);
  const found: string[] = [];
  const count = (statuses: readonly string[], text: string): number =>
    statuses.filter((status) => status.includes(text)).length;
  const captured = writes.map(({ statusLine }) => statusLine);
  const simulated = answers.map(({ status, reason }) => `HTTP/1.1 ${status} ${reason}`);
  for (const text of ['500 can', '596']) {
    const [expected, actual] = [count(captured, text), count(simulated, text)];
    if (Math.abs(expected - actual) > CHANCE)
      found.push(`«${text}»: captured ${expected}, simulated ${actual}`);
  }
  if (count(simulated, '596 Broken pipe') === 0) found.push('no broken pipe');
  const kinds = new Set(captured);
  for (const line of simulated) if (!kinds.has(line)) found.push(`simulated ${line}`);
  const sorted = (list: number[]): number[] => list.toSorted((a, b) => a - b);
  const expected = sorted(writes.map(({ elapsedSeconds }) => elapsedSeconds));
  for (const [index, at] of sorted(answers.map(({ durationMs }) => durationMs / 1000)).entries()) {
    const wanted = expected[index] ?? 0;
    if (Math.abs(at - wanted) > 10.5)
      found.push(`answer ${index}: after ${wanted} s, simulated ${at} s`);
  }
  if (blockedRead < 9) found.push(`a read of another VM took ${blockedRead} s`);
  if (laterRead > 1) found.push(`a later read took ${laterRead} s`);
  if ((seconds('/version')[0] ?? 9) > 1) found.push('/version did not answer at once');
  return found;
}
