/** Faults of Proxmox VE that a walk may meet at any request. */
import type { FaultAction, FaultSpec } from '../../simulator/faults.ts';

/** At any request. */
const anywhere: readonly FaultAction[] = [
  { kind: 'status', status: 596, reason: 'Connection timed out', when: 'before' },
  { kind: 'status', status: 596, reason: 'Connection timed out', when: 'after' },
  { kind: 'status', status: 595, reason: 'No route to host', when: 'before' },
  { kind: 'status', status: 500, reason: 'got timeout', when: 'after' },
  { kind: 'reset', when: 'before' },
  { kind: 'reset', when: 'after' },
  { kind: 'hang', when: 'after' },
  { kind: 'malformed' },
  { kind: 'slow', seconds: 30 },
];

/** Of tasks that a POST or a DELETE starts. */
const ofTasks: readonly FaultAction[] = [
  { kind: 'lostUpid' },
  { kind: 'task', fail: 'unable to do it: some error of this node' },
  { kind: 'task', failAfter: 'it was done, and then something went wrong' },
  { kind: 'task', killAfterSeconds: 0.03 },
  { kind: 'task', delaySeconds: 200 },
  { kind: 'task', vanish: true },
  { kind: 'task', warnings: 1 },
  // Nobody waits any more when it is carried out.
  { kind: 'slow', seconds: 220 },
];

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'POST', 'DELETE'] as const;

/** The fault of this number, for the next request of its method. */
export function nextFault(pick: number): FaultSpec & { method: string } {
  const method = methods[pick % methods.length] ?? 'GET';
  const actions = method === 'POST' || method === 'DELETE' ? [...anywhere, ...ofTasks] : anywhere;
  const action = actions[Math.floor(pick / methods.length) % actions.length];
  if (action === undefined) throw new Error('there are no faults');
  return { method, path: /./, times: 1, action };
}
