/** What users do: Proxies of one installation are applied, edited, paused, deleted. */
import { forceDeleteAnnotation, parseProxy, retryAnnotation } from '../../../api/proxy.ts';
import type { Proxy } from '../../../api/proxy.ts';
import type { FakeKubernetes, FakeObject } from '../../support/fakeKubernetes.ts';
import { slots, type Operation, type OperationKind } from './operations.ts';
import type { Operator } from './operator.ts';

/** `null`: nothing there that it could be done to. */
export type Act = (operator: Operator, operation: Operation, users: Users) => string | null;

/** What is remembered of Proxies that may be gone. */
export interface Users {
  /** First eight digits of the UIDs of Proxies that ever had the policy `Retain`. */
  everRetained: Set<string>;
  /** UIDs of all Proxies there ever were, by installation. */
  uids: { operator: Operator; uid: string }[];
  /** Makes values that are new. */
  next(): number;
}

export function newUsers(): Users {
  let last = 0;
  return {
    everRetained: new Set(),
    uids: [],
    next: () => {
      last += 1;
      return last;
    },
  };
}

/** Every Proxy of an installation as it stands. */
export function proxiesOf({ kubernetes }: Operator): Proxy[] {
  return slots.flatMap((name) => {
    const object = kubernetes.object(name);
    return object === undefined ? [] : [parseProxy(object)];
  });
}

type UserKind = Extract<
  OperationKind,
  'apply' | 'editSpec' | 'editPolicy' | 'pause' | 'resume' | 'retry' | 'delete' | 'forceDelete'
>;

export const userActs: Record<UserKind, Act> = {
  apply: (operator, operation, users) => {
    const { slot, pick } = operation;
    const name = nameOf(slot);
    if (operator.kubernetes.object(name)) return userActs.editSpec(operator, operation, users);
    const { metadata } = operator.kubernetes.put(name, specOf(pick));
    users.uids.push({ operator, uid: metadata.uid });
    if (policyOf(pick) === 'Retain') users.everRetained.add(metadata.uid.slice(0, 8));
    return `applies ${name} (UID ${metadata.uid})`;
  },
  editSpec: ({ kubernetes }, { slot, pick }, users) => {
    const changes = edits(users)[pick % edits(users).length] ?? {};
    return change(kubernetes, slot, changes);
  },
  editPolicy: ({ kubernetes }, { slot, pick }, users) => {
    const object = kubernetes.object(nameOf(slot));
    if (pick % 2 === 0) {
      const replaceStrategy = pick % 4 === 0 ? 'CreateFirst' : 'DeleteFirst';
      return change(kubernetes, slot, { replaceStrategy });
    }
    const deletionPolicy = policyOf(pick);
    if (object && deletionPolicy === 'Retain') {
      users.everRetained.add(object.metadata.uid.slice(0, 8));
    }
    return change(kubernetes, slot, { deletionPolicy });
  },
  pause: ({ kubernetes }, { slot }) => change(kubernetes, slot, { paused: true }),
  resume: ({ kubernetes }, { slot }) => {
    const object = kubernetes.object(nameOf(slot));
    if (object?.spec['paused'] !== true) return null;
    return change(kubernetes, slot, { paused: false });
  },
  retry: ({ kubernetes }, { slot }, users) =>
    annotate(kubernetes, slot, retryAnnotation, `retry-${users.next()}`),
  delete: ({ kubernetes }, { slot }) => remove(kubernetes, nameOf(slot)),
  forceDelete: ({ kubernetes }, { slot }, users) => {
    const deleted = remove(kubernetes, nameOf(slot));
    const forced = annotate(kubernetes, slot, forceDeleteAnnotation, `force-${users.next()}`);
    return forced ?? deleted;
  },
};

/** What is done where an operation finds nothing: a Proxy is made, or gets another cloud-init. */
export function instead(operator: Operator, operation: Operation, users: Users): string | null {
  for (const slot of slots.keys()) {
    if (operator.kubernetes.object(nameOf(slot))) continue;
    return userActs.apply(operator, { ...operation, slot }, users);
  }
  if (operation.pick % 3 !== 0) return null;
  const cloudInit = `#cloud-config\n# ${users.next()}\n`;
  return change(operator.kubernetes, operation.slot, { cloudInit });
}

function nameOf(slot: number): string {
  return slots[slot % slots.length] ?? slots[0];
}

function policyOf(pick: number): 'Delete' | 'Retain' {
  return Math.floor(pick / 7) % 5 === 0 ? 'Retain' : 'Delete';
}

function specOf(pick: number): Record<string, unknown> {
  return {
    provider: 'pve',
    placement: {
      machineType: pick % 2 === 0 ? 'small' : 'big',
      image: pick % 3 === 0 ? 'shared' : 'debian-13',
      zone: pick % 5 < 3 ? 'pve1' : 'pve2',
    },
    cloudInit: '#cloud-config\n',
    drainSeconds: 0,
    healthCheck: { intervalSeconds: 1, timeoutSeconds: 1, failureThreshold: 2 },
    replaceStrategy: pick % 4 === 0 ? 'DeleteFirst' : 'CreateFirst',
    deletionPolicy: policyOf(pick),
  };
}

/** Image, cores with memory and disk, node, cloud-init; the last one is always a change. */
function edits(users: Users): Record<string, unknown>[] {
  return [
    { placement: { machineType: 'small' } },
    { placement: { machineType: 'big' } },
    { placement: { image: 'shared' } },
    { placement: { image: 'debian-13' } },
    { placement: { zone: 'pve1' } },
    { placement: { zone: 'pve2' } },
    { cloudInit: `#cloud-config\n# ${users.next()}\n` },
  ];
}

/** A patch of the spec, as long as the Proxy is not being deleted; a pause may come and go even then. */
export function change(
  kubernetes: FakeKubernetes,
  slot: number,
  changes: Record<string, unknown>,
): string | null {
  const object = kubernetes.object(nameOf(slot));
  if (object === undefined) return null;
  if (object.metadata.deletionTimestamp !== undefined && !('paused' in changes)) return null;
  const { placement, ...others } = changes;
  const spec = { ...object.spec, ...others };
  if (typeof placement === 'object' && typeof object.spec['placement'] === 'object') {
    spec['placement'] = { ...object.spec['placement'], ...placement };
  }
  if (JSON.stringify(spec) === JSON.stringify(object.spec)) return null;
  const generation = object.metadata.generation + 1;
  kubernetes.put(object.metadata.name, spec, { ...object.metadata, generation });
  return `changes ${object.metadata.name}: ${JSON.stringify(changes)}`;
}

/** An annotation is no new generation. */
export function annotate(
  kubernetes: FakeKubernetes,
  slot: number,
  key: string,
  value: string,
): string | null {
  const object = kubernetes.object(nameOf(slot));
  if (object === undefined) return null;
  const annotations = { ...annotationsOf(object), [key]: value };
  kubernetes.put(object.metadata.name, object.spec, { ...object.metadata, annotations });
  return `annotates ${object.metadata.name}: ${key}=${value}`;
}

/** As `kubectl delete`. */
export function remove(kubernetes: FakeKubernetes, name: string): string | null {
  const object = kubernetes.object(name);
  if (object === undefined || object.metadata.deletionTimestamp !== undefined) return null;
  kubernetes.remove(name);
  return `deletes ${name}`;
}

function annotationsOf({ metadata }: FakeObject): object {
  const { annotations } = metadata;
  return typeof annotations === 'object' && annotations !== null ? annotations : {};
}
