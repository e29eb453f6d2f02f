/** The columns of the matrix that something else causes: what Proxmox VE or Kubernetes does to a step's main request. */
import type { FaultAction } from '../../simulator/faults.ts';
import type { Reason } from '../../../workflows/contract/errors.ts';
import type { KubernetesFault } from './records.ts';
import type { Row } from './rows.ts';

export interface ProxmoxFault {
  kind: 'proxmox';
  name: string;
  /** Which request of the step it meets. */
  request: 'main' | 'first read';
  /** What happens; `uploadAction` to an upload, whose bound grows with its size. */
  action: FaultAction;
  uploadAction?: FaultAction;
  /** Which requests can meet it: any, those that change something, those that start a task. */
  meets: 'any' | 'write' | 'task';
  /** Reasons a user may read while it lasts. */
  reasons: readonly Reason[];
}
export interface KubernetesFaultColumn {
  kind: 'kubernetes';
  name: string;
  fault: KubernetesFault;
  reasons: readonly Reason[];
}
export type Fault = ProxmoxFault | KubernetesFaultColumn;

function answer(status: number, reason: string, when: 'before' | 'after' = 'before'): FaultAction {
  return { kind: 'status', status, reason, when };
}

function proxmox(
  name: string,
  meets: ProxmoxFault['meets'],
  action: FaultAction,
  ...reasons: Reason[]
): ProxmoxFault {
  return { kind: 'proxmox', request: 'main', name, meets, action, reasons };
}

function onFirstRead(name: string, action: FaultAction, reason: Reason): ProxmoxFault {
  return { ...proxmox(`${name} on its first read`, 'any', action, reason), request: 'first read' };
}

/** What a write of unknown outcome may look like once the world was looked at. */
const unsettled = ['CloneOutcomeUnknown', 'LostRace', 'VmRunning', 'WaitingForLock'] as const;

export const faults: readonly Fault[] = [
  proxmox('595', 'any', answer(595, 'No route to host'), 'Unreachable'),
  proxmox('596', 'any', answer(596, 'Connection timed out'), 'Unreachable', ...unsettled),
  proxmox(
    '596 when done',
    'write',
    answer(596, 'Connection timed out', 'after'),
    'Unreachable',
    ...unsettled,
  ),
  proxmox('reset', 'any', { kind: 'reset', when: 'before' }, 'Unreachable', ...unsettled),
  proxmox(
    'reset when done',
    'write',
    { kind: 'reset', when: 'after' },
    'Unreachable',
    ...unsettled,
  ),
  proxmox('500, task runs', 'task', { kind: 'lostUpid' }, 'WaitingForLock', ...unsettled),
  proxmox('401', 'any', answer(401, 'permission denied - invalid PVE API token'), 'Unauthorized'),
  proxmox(
    '403',
    'any',
    answer(403, 'Permission check failed (/vms/100000, VM.Allocate)'),
    'Forbidden',
  ),
  proxmox('hang', 'any', { kind: 'hang', when: 'before' }, 'Timeout', ...unsettled),
  proxmox('hang when done', 'write', { kind: 'hang', when: 'after' }, 'Timeout', ...unsettled),
  // Nobody waits any more when it is carried out, 0.2 s after the bound of 1 s (an upload's: 2 s).
  {
    ...proxmox(
      'done after its bound',
      'write',
      { kind: 'slow', seconds: 120 },
      'Timeout',
      ...unsettled,
    ),
    uploadAction: { kind: 'slow', seconds: 220 },
  },
  proxmox('malformed', 'any', { kind: 'malformed' }, 'ApiError', ...unsettled),
  proxmox('slow', 'any', { kind: 'slow', seconds: 30 }),
  proxmox(
    'task error',
    'task',
    { kind: 'task', fail: 'unable to do it: some error of this node' },
    'TaskFailed',
  ),
  proxmox('task WARNINGS', 'task', { kind: 'task', warnings: 2 }),
  proxmox(
    'task unexpected status',
    'task',
    { kind: 'task', killAfterSeconds: 0.03 },
    'TaskFailed',
    'VmLeftover',
    ...unsettled,
  ),
  // Longer than any budget: 9 s, and the longest is 6 s.
  proxmox(
    'task outlasts its budget',
    'task',
    { kind: 'task', delaySeconds: 900 },
    'BudgetExceeded',
    'WaitingForLock',
  ),
  proxmox('task vanishes', 'task', { kind: 'task', vanish: true }, 'TaskUnknown', ...unsettled),
  onFirstRead('596', answer(596, 'Connection timed out'), 'Unreachable'),
  onFirstRead('403', answer(403, 'Permission check failed (/vms/100000, VM.Audit)'), 'Forbidden'),
  onFirstRead('hang', { kind: 'hang', when: 'before' }, 'Timeout'),
  onFirstRead('malformed', { kind: 'malformed' }, 'ApiError'),
  kubernetes('k8s conflict', 'HTTP 409: the object has been modified', 'before'),
  kubernetes('k8s 500', 'HTTP 500: etcdserver: request timed out', 'before'),
  kubernetes('k8s unreachable', 'no answer: connection refused', 'before'),
  kubernetes('k8s no answer when done', 'no answer within the time limit', 'after'),
];

function kubernetes(
  name: string,
  message: string,
  when: KubernetesFault['when'],
): KubernetesFaultColumn {
  const fault = { message, when };
  return { kind: 'kubernetes', name, fault, reasons: ['KubernetesUnavailable'] };
}

/** Why this fault cannot meet this step, or null when it can. */
export function cannotMeet(
  fault: Fault,
  { proxmox: request, kubernetes: call }: Row,
): string | null {
  if (fault.kind === 'kubernetes') {
    if (call === null) return 'asks nothing of Kubernetes';
    return fault.fault.when === 'after' && call === 'get' ? 'a read: nothing is done' : null;
  }
  if (request === null) return 'asks nothing of Proxmox VE';
  if (fault.request === 'first read' && !request.readsBefore)
    return 'its main request is the first';
  if (fault.meets === 'write' && request.method === 'GET') return 'a read: nothing is done';
  return fault.meets === 'task' && !request.task ? 'starts no task' : null;
}
