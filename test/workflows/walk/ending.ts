/** The end of a walk: the administrator mends what was broken, and then everything must be as it was asked for. */
import { setTimeout as delay } from 'node:timers/promises';
import { forceDeleteAnnotation, retryAnnotation, type Proxy } from '../../../api/proxy.ts';
import type { Vm } from '../../simulator/cluster.ts';
import type { AdminWorld } from './admin.ts';
import type { Entry } from './ledger.ts';
import { machines, type Operator } from './operator.ts';
import { slots } from './operations.ts';
import { annotate, change, proxiesOf, remove, type Users } from './user.ts';

export interface EndWorld extends AdminWorld {
  users: Users;
  /** Far more than anything needs in scaled time: only what is stuck runs into it. */
  patienceMs: number;
  /** Throws when harm was done, or something broke. */
  check: () => void;
}

const pauseMs = 400;

/** Faults, locks, protections and pauses end, every node runs. */
export function mend({ cluster: { simulator, ledger }, operators }: EndWorld): void {
  simulator.faults.clear();
  if (simulator.cluster.nodes.get('pve2')?.state === 'dead') {
    simulator.setNode('pve2', { state: 'up' });
  }
  for (const { vm, entry } of ledger.standing()) {
    if (entry.maker === 'hand') continue;
    vm.config.delete('protection');
    const lock = vm.config.get('lock');
    if (lock !== undefined && !isHeld(simulator.tasks, vm)) vm.config.delete('lock');
  }
  for (const { kubernetes } of operators) {
    for (const slot of slots.keys()) {
      const object = kubernetes.object(slots[slot] ?? '');
      if (object?.spec['paused'] === true) change(kubernetes, slot, { paused: false });
    }
  }
}

/** A task works on the VM: its lock is none that was forgotten. */
function isHeld(tasks: EndWorld['cluster']['simulator']['tasks'], { vmid }: Vm): boolean {
  const makes = (line: string): boolean => line.endsWith(` with ID ${vmid}`);
  return tasks.some(({ running, id, log }) => running && (id === String(vmid) || log.some(makes)));
}

/** Each Proxy has one VM as its spec says, or a condition that what the administrator did explains. */
export async function expectWanted(world: EndWorld): Promise<void> {
  const retried = new Set<string>();
  await untilNothing(world, 'each Proxy is as wanted', () =>
    world.operators.flatMap((operator) =>
      proxiesOf(operator).flatMap((proxy) => {
        const wrong = whatIsWrong(world, operator, proxy);
        if (wrong.length === 0) return [];
        if (isExplained(world, proxy)) return retryOnce(world, operator, proxy, retried);
        retryOnce(world, operator, proxy, retried);
        const reasons = proxy.status.conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`); // prettier-ignore
        return wrong.map((what) => `${operator.name} ${proxy.metadata.name}: ${what} (${reasons.join(', ')})`); // prettier-ignore
      }),
    ),
  );
}

/** A failure that is not tried again by itself, because its cause is gone or not, as a user would. */
function retryOnce(
  { users }: EndWorld,
  { kubernetes }: Operator,
  { metadata: { name, uid }, status }: Proxy,
  retried: Set<string>,
): string[] {
  if (retried.has(uid) || !status.conditions.some(isStall)) return [];
  retried.add(uid);
  const slot = slots.findIndex((one) => one === name);
  annotate(kubernetes, slot, retryAnnotation, `retry-${users.next()}`);
  return [`${name} was told to try again`];
}

function isStall({ type, status }: Proxy['status']['conditions'][number]): boolean {
  return type === 'Stalled' && status === 'True';
}

/** Reasons that mean: somebody has to look at VMs of this Proxy's name. */
const causes: ReadonlySet<string> = new Set([
  'OwnershipConflict',
  'DuplicateVm',
  'InstallationMismatch',
  // A VM that somebody took still has the seed in its drive.
  'DeletionBlocked',
]);

function isExplained({ cluster: { ledger } }: EndWorld, proxy: Proxy): boolean {
  const prefix = proxy.metadata.uid.slice(0, 8);
  const told = proxy.status.conditions.some(({ reason, message }) =>
    [...causes].some((cause) => reason === cause || message.includes(cause)),
  );
  const stalled = proxy.status.conditions.some(isStall);
  const cause = ledger.standing().some(({ entry }) => {
    const { maker, takenAtMs, wasTaken } = entry;
    return entry.uidPrefix === prefix && (maker === 'hand' || takenAtMs !== null || wasTaken);
  });
  return (told || stalled) && cause;
}

function whatIsWrong(
  world: EndWorld,
  operator: Operator,
  { metadata, spec, status }: Proxy,
): string[] {
  const { ledger } = world.cluster;
  if (metadata.deletionTimestamp !== undefined) return [`is still there (${status.message})`];
  const serves = (vm: Vm): boolean =>
    status.phase === 'Ready' && vm.vmid === status.vmid && vm.config.get('name') === status.vmName;
  const own = ledger.standing().filter(
    ({ vm, entry }) =>
      isOwn(operator, metadata.uid, vm, entry) ||
      // Whose mark is spoilt while it serves is noticed when something is to be done to it, not before.
      (entry.maker === operator.name && serves(vm)),
  );
  const given = new Set(status.leftovers.map(({ vmid }) => vmid));
  const counted = own.filter(
    ({ vm, entry }) => !given.has(vm.vmid) && (!entry.wasTaken || status.vmid === vm.vmid),
  );
  const [only] = counted;
  if (counted.length !== 1 || only === undefined) {
    return [`has ${counted.length} VMs (${status.phase}: ${status.message})`];
  }
  const { config, vmid, running } = only.vm;
  const { cores, memoryMiB } = machines[spec.placement?.machineType === 'big' ? 'big' : 'small'];
  const wrong: [boolean, string][] = [
    [status.phase !== 'Ready', `is ${status.phase}: ${status.message}`],
    [status.observedGeneration !== metadata.generation, 'its newest generation is not accepted'],
    [status.specHash !== status.desiredSpecHash, 'an older spec serves'],
    [status.vmid !== vmid, `its status names VM ${status.vmid}, not ${vmid}`],
    [status.vmName !== config.get('name'), `its VM is named ${config.get('name')}`],
    [config.get('cores') !== String(cores), `its VM has ${config.get('cores')} cores`],
    [config.get('memory') !== String(memoryMiB), `its VM has ${config.get('memory')} MiB`],
    [running === null, 'its VM does not run'],
  ];
  return wrong.flatMap(([is, text]) => (is ? [text] : []));
}

/** Made by this installation for that UID, and neither taken by the administrator nor a placeholder of a clone that died. */
function isOwn(operator: Operator, uid: string, vm: Vm, { maker, takenAtMs }: Entry): boolean {
  const name = vm.config.get('name') ?? '';
  return maker === operator.name && takenAtMs === null && name.includes(`-${uid.slice(0, 8)}-`);
}

/** Every Proxy is deleted; nothing of any is left but what was to be retained, or is the administrator's by now. */
export async function expectNothingLeft(world: EndWorld): Promise<void> {
  const { operators, users } = world;
  for (const { kubernetes } of operators) for (const name of slots) remove(kubernetes, name);
  await untilNothing(world, 'nothing of the Proxies is left', async () => {
    const left: string[] = [];
    for (const operator of operators) {
      for (const { metadata, status, ...proxy } of proxiesOf(operator)) {
        const what = `${operator.name} ${metadata.name} (${status.message})`;
        if (isExplained(world, { metadata, status, ...proxy })) {
          const slot = slots.findIndex((name) => name === metadata.name);
          annotate(operator.kubernetes, slot, forceDeleteAnnotation, 'at the end');
        }
        left.push(what);
      }
    }
    for (const { operator, uid } of users.uids) {
      const run = await operator.openRun(uid);
      if (run !== null) left.push(`run of ${uid} of ${operator.name}: ${run}`);
    }
    return [...left, ...vmsLeft(world), ...seedsLeft(world)];
  });
}

function vmsLeft({ cluster: { ledger }, users }: EndWorld): string[] {
  return ledger.standing().flatMap(({ vm, entry }) => {
    const { maker, takenAtMs, uidPrefix, story } = entry;
    const name = vm.config.get('name');
    // A bare placeholder has no owner that could be proven; a person removes it (design §5).
    if (maker === 'hand' || takenAtMs !== null || name === undefined) return [];
    // Nobody can tell it from its restored backup: a person decides.
    const all = ledger.standing();
    if (all.some(({ vm: other }) => other !== vm && other.config.get('name') === name)) return [];
    const prefix = uidDigitsOf(name) ?? uidPrefix ?? '';
    if (users.everRetained.has(prefix) && /=Retain|=retained/.test(vm.config.get('description') ?? '')) return []; // prettier-ignore
    return [`VM ${vm.vmid} ${name} (${story})`];
  });
}

/** A seed may stay while a VM has it in its drive, or has a name with its Proxy's UID (design §7). */
function seedsLeft({ cluster: { simulator }, operators }: EndWorld): string[] {
  const vms = simulator.vms();
  return simulator.isos().flatMap(({ node, name }) => {
    if (!operators.some(({ hex }) => name.includes(`-${hex}-`))) return [];
    const needed = vms.some(
      ({ config }) =>
        config.get('ide2')?.includes(name) === true ||
        uidDigitsOf(config.get('name') ?? '') === uidDigitsOf(name.replace(/-seed\.iso$/, '')),
    );
    return needed ? [] : [`seed ${name} on ${node}`];
  });
}

function uidDigitsOf(vmName: string): string | undefined {
  return /-([0-9a-f]{8})-[0-9a-f]{6}$/.exec(vmName)?.[1];
}

/** Asks until nothing is wrong; meanwhile alarms are confirmed, collections run, and what a task left locked is unlocked. */
async function untilNothing(
  world: EndWorld,
  what: string,
  wrong: () => string[] | Promise<string[]>,
): Promise<void> {
  const end = Date.now() + world.patienceMs;
  for (let round = 0; ; round += 1) {
    mend(world);
    for (const operator of world.operators) {
      const alarms = operator.alarms();
      const alarm = alarms[round % Math.max(1, alarms.length)];
      // The config file is looked at every two seconds.
      if (alarm !== undefined && round % 8 === 0) operator.confirm(alarm);
      if (round % 4 === 0) await operator.collect();
    }
    world.check();
    const problems = await wrong();
    if (problems.length === 0) return;
    if (Date.now() > end) throw new Error(`never came true: ${what}\n${problems.join('\n')}`);
    await delay(pauseMs);
  }
}
