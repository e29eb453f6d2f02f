import { z } from 'zod';
import type { FaultAction, FaultSpec } from './faults.ts';
import type { NodeChange, StorageChange } from './operate.ts';
import type { GuestChange } from './power.ts';

const taskFault = {
  fail: z.string().optional(),
  failAfter: z.string().optional(),
  warnings: z.number().int().optional(),
  killAfterSeconds: z.number().optional(),
  vanish: z.boolean().optional(),
  delaySeconds: z.number().optional(),
  hang: z.boolean().optional(),
};

const when = z.enum(['before', 'after']).default('before');

const faultSpec = z.strictObject({
  method: z.string().optional(),
  path: z.string(),
  name: z.string().optional(),
  nth: z.number().int().min(1).optional(),
  times: z.number().int().min(1).optional(),
  action: z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('status'),
      status: z.number().int(),
      reason: z.string(),
      when,
      body: z.string().optional(),
    }),
    z.strictObject({ kind: z.literal('reset'), when }),
    z.strictObject({ kind: z.literal('hang'), when }),
    z.strictObject({ kind: z.literal('slow'), seconds: z.number() }),
    z.strictObject({ kind: z.literal('malformed'), body: z.string().optional() }),
    z.strictObject({ kind: z.literal('lostUpid') }),
    z.strictObject({ kind: z.literal('task'), ...taskFault }),
  ]),
});

const nodeChange = z.strictObject({
  state: z.enum(['up', 'dead', 'cut', 'refusing']).optional(),
  quorum: z.boolean().optional(),
  pvedaemon: z.boolean().optional(),
  pmxcfs: z.boolean().optional(),
  pvestatd: z.boolean().optional(),
  sshSeconds: z.number().nonnegative().optional(),
});

const storageChange = z.strictObject({
  mounted: z.boolean().optional(),
  disabled: z.boolean().optional(),
  slowSeconds: z.number().nonnegative().optional(),
  allocationSeconds: z.number().nonnegative().optional(),
  cloneSlots: z.number().int().positive().optional(),
});

const guestChange = z.strictObject({
  proxyBroken: z.boolean().optional(),
  newAddress: z.boolean().optional(),
});

/** Body of `POST /locks`. */
export const heldLock = z.strictObject({
  name: z.string(),
  seconds: z.number().positive(),
  node: z.string().optional(),
});

/** Throws when the body is of another shape. */
export function parseFault(body: unknown): FaultSpec {
  const { method, name, nth, times, path, action } = faultSpec.parse(body);
  return {
    path,
    action: parseAction(action),
    ...(method === undefined ? {} : { method }),
    ...(name === undefined ? {} : { name }),
    ...(nth === undefined ? {} : { nth }),
    ...(times === undefined ? {} : { times }),
  };
}

/** zod's optional keys may hold `undefined`, which our types do not allow. */
function parseAction(action: z.output<typeof faultSpec>['action']): FaultAction {
  if (action.kind === 'status') {
    const { body, ...rest } = action;
    return body === undefined ? rest : { ...rest, body };
  }
  if (action.kind === 'malformed') {
    return action.body === undefined
      ? { kind: 'malformed' }
      : { kind: 'malformed', body: action.body };
  }
  if (action.kind !== 'task') return action;
  const fault: FaultAction = { kind: 'task' };
  if (action.fail !== undefined) fault.fail = action.fail;
  if (action.failAfter !== undefined) fault.failAfter = action.failAfter;
  if (action.warnings !== undefined) fault.warnings = action.warnings;
  if (action.killAfterSeconds !== undefined) fault.killAfterSeconds = action.killAfterSeconds;
  if (action.vanish !== undefined) fault.vanish = action.vanish;
  if (action.delaySeconds !== undefined) fault.delaySeconds = action.delaySeconds;
  if (action.hang !== undefined) fault.hang = action.hang;
  return fault;
}

/** Throws when the body is of another shape. */
export function parseNodeChange(body: unknown): Partial<NodeChange> {
  const parsed = nodeChange.parse(body);
  const change: Partial<NodeChange> = {};
  if (parsed.state !== undefined) change.state = parsed.state;
  if (parsed.quorum !== undefined) change.quorum = parsed.quorum;
  if (parsed.pvedaemon !== undefined) change.pvedaemon = parsed.pvedaemon;
  if (parsed.pmxcfs !== undefined) change.pmxcfs = parsed.pmxcfs;
  if (parsed.pvestatd !== undefined) change.pvestatd = parsed.pvestatd;
  if (parsed.sshSeconds !== undefined) change.sshSeconds = parsed.sshSeconds;
  return change;
}

/** Throws when the body is of another shape. */
export function parseGuestChange(body: unknown): GuestChange {
  const parsed = guestChange.parse(body);
  const change: GuestChange = {};
  if (parsed.proxyBroken !== undefined) change.proxyBroken = parsed.proxyBroken;
  if (parsed.newAddress !== undefined) change.newAddress = parsed.newAddress;
  return change;
}

/** Throws when the body is of another shape. */
export function parseStorageChange(body: unknown): Partial<StorageChange> {
  const parsed = storageChange.parse(body);
  const change: Partial<StorageChange> = {};
  if (parsed.mounted !== undefined) change.mounted = parsed.mounted;
  if (parsed.disabled !== undefined) change.disabled = parsed.disabled;
  if (parsed.slowSeconds !== undefined) change.slowSeconds = parsed.slowSeconds;
  if (parsed.allocationSeconds !== undefined) change.allocationSeconds = parsed.allocationSeconds;
  if (parsed.cloneSlots !== undefined) change.cloneSlots = parsed.cloneSlots;
  return change;
}
