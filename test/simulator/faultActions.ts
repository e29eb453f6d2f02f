import type { Core } from './core.ts';
import { ApiError, dieWith } from './errors.ts';
import type { FaultAction } from './faults.ts';
import type { Outcome } from './httpServer.ts';
import { errorReply } from './replies.ts';
import type { RawParams } from './schema.ts';
import { parseUpid, type TaskFault } from './tasks.ts';

/** A request as faults see it. */
export interface FaultTarget {
  method: string;
  /** Below /api2/json. */
  path: string;
  /** Name of the VM or file it is about; empty when it is about neither. */
  name: string;
}

/** What a request is about: the VM of the path or of a task, the name of a new VM, a file. */
export function targetName(
  core: Core,
  method: string,
  segments: readonly string[],
  raw: RawParams,
): string {
  const [first, , kind, third = '', fourth = ''] = segments;
  if (first !== 'nodes') return '';
  if (kind === 'storage') {
    const file = fourth === 'upload' ? raw['filename'] : segments.slice(5).join('/');
    return String(file ?? '');
  }
  if (kind === 'qemu' && fourth === 'clone' && method === 'POST') return String(raw['name'] ?? '');
  const vmid = kind === 'tasks' ? parseUpid(third)?.id : kind === 'qemu' ? third : undefined;
  return core.cluster.vms.get(Number(vmid))?.config.get('name') ?? '';
}

/**
 * Carries a request out in the manner of the rule of the queue, or of the name, that it meets. `act` gets what is to
 * become of the task it starts.
 */
export async function withFaults(
  core: Core,
  target: FaultTarget,
  act: (taskFault: TaskFault | null) => Promise<Outcome>,
): Promise<Outcome> {
  const rule = core.faults.take(target);
  const goneOn = (): Promise<void> =>
    rule === undefined ? new Promise(() => undefined) : core.faults.goneOn(rule.id);
  const action = rule?.action ?? core.requestFault(target);
  return action === undefined ? act(null) : carryOut(core, action, act, goneOn);
}

async function carryOut(
  core: Core,
  action: FaultAction,
  act: (taskFault: TaskFault | null) => Promise<Outcome>,
  goneOn: () => Promise<void>,
): Promise<Outcome> {
  switch (action.kind) {
    case 'slow':
      await Promise.race([core.clock.sleep(action.seconds), goneOn()]);
      return act(null);
    case 'task':
      return act(action.hang === true ? { ...action, until: goneOn() } : action);
    case 'malformed': {
      const outcome = await act(null);
      if (typeof outcome === 'string') return outcome;
      return { ...outcome, body: Buffer.from(action.body ?? '{"data":{"upid') };
    }
    case 'lostUpid': {
      const text = "can't lock file '/var/log/pve/tasks/.active.lock' - got timeout";
      await act(null);
      return errorReply(dieWith(text), 'json');
    }
    case 'status': {
      if (action.when === 'after') await act(null);
      const body = action.status >= 595 || action.status === 401 ? 'none' : 'json';
      const reply = errorReply(new ApiError(action.status, action.reason, { body }), 'json');
      return action.body === undefined ? reply : { ...reply, body: Buffer.from(action.body) };
    }
    case 'reset':
    case 'hang':
      if (action.when === 'after') await act(null);
      return action.kind;
    default:
      return act(null);
  }
}
