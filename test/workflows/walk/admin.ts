/** What an administrator does to VMs, by hand and behind the operators' backs, and to what is his own. */
import { randomBytes } from 'node:crypto';
import type { Vm } from '../../simulator/cluster.ts';
import type { Cluster } from './cluster.ts';
import type { Entry } from './ledger.ts';
import type { Operation, OperationKind } from './operations.ts';
import type { Operator } from './operator.ts';
import { proxiesOf } from './user.ts';

/** Name and description before the administrator took a VM. */
export type Taken = Map<Vm, { name: string; description: string }>;

export interface AdminWorld {
  cluster: Cluster;
  operators: readonly Operator[];
  taken: Taken;
  /** Lines that were added to descriptions, which every rewrite of the mark has to keep. */
  notes: Map<Vm, string>;
}

type Act = (world: AdminWorld, operation: Operation) => string | null;

const mostByHand = 12;
const newDescription = 'ours now';

type VmKind = Extract<
  OperationKind,
  | 'stopVm'
  | 'destroyVm'
  | 'rename'
  | 'retag'
  | 'note'
  | 'spoilMark'
  | 'giveBack'
  | 'migrate'
  | 'lock'
  | 'unlock'
  | 'protect'
  | 'unprotect'
  | 'restoreCopy'
  | 'cloneByHand'
  | 'addGuest'
  | 'removeGuest'
  | 'addIso'
>;

export const adminActs: Record<VmKind, Act> = {
  stopVm: onVm(
    ({ running }) => running !== null,
    ({ cluster }, { vmid }) => cluster.simulator.powerOffVm(vmid),
  ),
  destroyVm: onVm(
    ({ config }) => !config.has('lock'),
    ({ cluster }, { vmid }) => cluster.simulator.removeVm(vmid),
  ),
  rename: onVm(isItself, (world, vm, { entry }) => {
    take(world, vm, entry, `old-${vm.vmid}`, vm.config.get('description') ?? '');
  }),
  retag: onVm(
    () => true,
    (_world, { config }, { pick }) => {
      if (pick % 2 === 0) config.delete('tags');
      else config.set('tags', 'infra;keep');
    },
  ),
  note: onVm(
    (vm) => isItself(vm) && !vm.config.has('lock'),
    ({ notes }, vm, { pick }) => {
      if (notes.has(vm)) return;
      const line = `ticket ${pick}: ask Ann`;
      notes.set(vm, line);
      const description = vm.config.get('description') ?? '';
      vm.config.set('description', `${description}\n${line}`);
    },
  ),
  spoilMark: onVm(isItself, (world, vm, { entry, pick }) => {
    const { name, description } = identityOf(vm);
    const other = entry.maker === 'alpha' ? 'beta' : 'alpha';
    const spoilt = [
      newDescription,
      description.replace(/uid=[0-9a-f]{8}/, 'uid=00000000'),
      description.replace(/installation=.*/, `installation=installation-${other}`),
    ];
    take(world, vm, entry, name, spoilt[pick % spoilt.length] ?? newDescription);
  }),
  giveBack: onVm(
    () => true,
    (world, vm, { entry }) => {
      giveBack(world, vm, entry);
    },
    true,
  ),
  migrate: onVm(
    ({ config }) => !config.has('lock'),
    ({ cluster }, { vmid, node }) =>
      cluster.simulator.moveVm(vmid, node === 'pve1' ? 'pve2' : 'pve1'),
  ),
  lock: onVm(
    ({ config }) => !config.has('lock'),
    (_world, { config }, { pick }) =>
      void config.set('lock', ['backup', 'snapshot', 'migrate'][pick % 3] ?? 'backup'),
  ),
  unlock: onVm(
    ({ config }) => /backup|snapshot|migrate/.test(config.get('lock') ?? ''),
    (_world, { config }) => void config.delete('lock'),
  ),
  protect: onVm(
    ({ config }) => !config.has('lock'),
    (_world, { config }) => void config.set('protection', '1'),
  ),
  unprotect: onVm(
    ({ config }) => config.get('protection') === '1',
    (_world, { config }) => void config.delete('protection'),
  ),
  restoreCopy: onVm(isItself, (world, vm, { entry, pick }) => {
    copy(world, vm, pick, new Map(vm.config), `a backup of VM ${vm.vmid}`, entry.maker);
  }),
  cloneByHand: onVm(
    () => true,
    (world, vm, { pick }) => {
      const config = new Map(vm.config);
      config.set('name', pick % 3 === 0 ? nameOfAnother(world, vm) : `copy-of-${vm.vmid}`);
      config.set(
        'net0',
        (config.get('net0') ?? '').replace(/([0-9A-F]{2}:){5}[0-9A-F]{2}/, newMac),
      );
      copy(world, vm, pick, config, `a clone of VM ${vm.vmid}`, null);
    },
  ),
  addGuest: ({ cluster }, { pick }) => {
    if (byHand(cluster).length >= mostByHand) return null;
    const config = new Map([['name', `by-hand-${pick}`]]);
    const vm = cluster.place({ pick, type: 'qemu', node: 'pve1', config, story: 'made by hand' });
    return vm === null ? null : `makes VM ${vm.vmid}`;
  },
  removeGuest: ({ cluster }, { pick }) => {
    const vms = byHand(cluster);
    const vm = vms.length > 3 ? vms[pick % vms.length] : undefined;
    if (vm === undefined) return null;
    cluster.simulator.removeVm(vm.vmid);
    return `removes his ${vm.vmid}`;
  },
  addIso: ({ cluster }, { pick }) => {
    const name = `hand-${pick}-seed.iso`;
    cluster.addIso('pve1', name);
    return `uploads ${name}`;
  },
};

/** Gives the name and the description back that a VM had before; the rest is as the operator finds it. */
function giveBack({ taken }: AdminWorld, vm: Vm, entry: Entry): void {
  const before = taken.get(vm);
  if (before === undefined) return;
  vm.config.set('name', before.name);
  vm.config.set('description', before.description);
  taken.delete(vm);
  entry.takenAtMs = null;
  entry.wasTaken = true;
}

function take(
  { taken }: AdminWorld,
  vm: Vm,
  entry: Entry,
  name: string,
  description: string,
): void {
  if (!taken.has(vm)) taken.set(vm, identityOf(vm));
  vm.config.set('name', name);
  vm.config.set('description', description);
  entry.takenAtMs ??= Date.now();
}

function identityOf({ config }: Vm): { name: string; description: string } {
  return { name: config.get('name') ?? '', description: config.get('description') ?? '' };
}

/** Name and mark are there: the clone is over. */
function isItself({ config }: Vm): boolean {
  return (config.get('description') ?? '').includes('proxy-operator-uid=');
}

/** An act on a VM that an installation made, on a node that runs; `own`: only on those an administrator took. */
function onVm(
  fits: (vm: Vm) => boolean,
  act: (world: AdminWorld, vm: Vm, context: { entry: Entry; pick: number }) => void,
  own = false,
): Act {
  return (world, { kind, pick }) => {
    const { simulator, ledger } = world.cluster;
    const isUp = ({ node }: Vm): boolean => simulator.cluster.nodes.get(node)?.state === 'up';
    const found = ledger.standing().filter(({ vm, entry }) => {
      if (entry.maker === 'hand' || world.taken.has(vm) !== own || !isUp(vm)) return false;
      return vm.config.has('name') && vm.config.get('lock') !== 'clone' && fits(vm);
    });
    const chosen = found[pick % Math.max(1, found.length)];
    if (chosen === undefined) return null;
    const { vm, entry } = chosen;
    const { vmid } = vm;
    act(world, vm, { entry, pick });
    simulator.refreshStats();
    return `${kind} VM ${vmid} of ${entry.maker}`;
  };
}

function copy(
  { cluster }: AdminWorld,
  { node }: Vm,
  pick: number,
  config: Map<string, string>,
  story: string,
  restoredFrom: Entry['maker'] | null,
): void {
  if (byHand(cluster).length >= mostByHand) return;
  for (const key of ['lock', 'protection']) config.delete(key);
  const of = restoredFrom === 'hand' ? null : restoredFrom;
  cluster.place({ pick, type: 'qemu', node, config, story, restoredFrom: of });
}

/** As if it belonged to a Proxy of the other installation; its mark says otherwise. */
function nameOfAnother({ cluster, operators }: AdminWorld, vm: Vm): string {
  const maker = cluster.ledger.entryOf(vm)?.maker;
  const other = operators.find(({ name }) => name !== maker);
  const uid = other === undefined ? undefined : proxiesOf(other)[0]?.metadata.uid;
  return `proxy-p1-${other?.hex ?? 'abcdef'}-${(uid ?? '00000000').slice(0, 8)}-abcdef`;
}

function newMac(): string {
  const bytes = [...randomBytes(3)].map((byte) => byte.toString(16).padStart(2, '0'));
  return ['BC', '24', '11', ...bytes].join(':').toUpperCase();
}

/** VMs and containers that an administrator may remove again. */
function byHand({ ledger }: Cluster): Vm[] {
  return ledger
    .standing()
    .filter(({ vm, entry }) => entry.maker === 'hand' && !vm.config.has('template'))
    .map(({ vm }) => vm);
}
