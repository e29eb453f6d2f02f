/** What users and administrators may do in a walk. Data only: the same operations can be carried out again. */
import { array, constant, constantFrom, nat, oneof, record, type Arbitrary } from 'fast-check';

export const installationNames = ['alpha', 'beta'] as const;
export type InstallationName = (typeof installationNames)[number];

/** How often each is done, out of their sum. */
const weights = {
  // a user
  apply: 14,
  editSpec: 10,
  editPolicy: 4,
  pause: 2,
  resume: 4,
  retry: 3,
  delete: 6,
  forceDelete: 2,
  // an administrator, on a VM that an installation made
  stopVm: 4,
  destroyVm: 3,
  rename: 2,
  retag: 3,
  note: 3,
  spoilMark: 2,
  giveBack: 4,
  migrate: 3,
  lock: 3,
  unlock: 5,
  protect: 2,
  unprotect: 4,
  restoreCopy: 2,
  cloneByHand: 3,
  // an administrator, on what is his own
  addGuest: 2,
  removeGuest: 3,
  addIso: 1,
  // the cluster and time
  nodeDown: 1,
  nodeUp: 4,
  fault: 8,
  confirmAlarms: 3,
  collect: 4,
  timePasses: 16,
} as const;
export type OperationKind = keyof typeof weights;

export interface Operation {
  kind: OperationKind;
  by: InstallationName;
  /** Which Proxy of the installation. */
  slot: number;
  /** Which of the things there are: a VM, a fault, a value. Taken modulo their number. */
  pick: number;
}

export const slots = ['p1', 'p2', 'p3'] as const;

function isKind(name: string): name is OperationKind {
  return name in weights;
}

const kinds = Object.keys(weights).filter(isKind);

/** One walk of exactly so many operations. */
export function walks(length: number): Arbitrary<Operation[]> {
  const kind = oneof(
    ...kinds.map((name) => ({ weight: weights[name], arbitrary: constant(name) })),
  );
  const operation = record({
    kind,
    by: constantFrom(...installationNames),
    slot: nat(slots.length - 1),
    pick: nat(9_999),
  });
  return array(operation, { minLength: length, maxLength: length });
}
