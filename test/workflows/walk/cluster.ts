/** The one cluster of a walk: two nodes, a token for each installation with the same rights, other people's guests and files. */
import { startSimulator, type Simulator } from '../../simulator/simulator.ts';
import { newVm, type Vm } from '../../simulator/cluster.ts';
import { addDisk, addIso } from '../../support/simulatedVolumes.ts';
import { stepFixture, tokenSecret } from '../../support/stepFixture.ts';
import { keepLedger, type Ledger } from './ledger.ts';
import type { InstallationName } from './operations.ts';

export const tokens = {
  'proxy-operator@pve!alpha': 'alpha',
  'proxy-operator@pve!beta': 'beta',
} as const satisfies Record<string, InstallationName>;

/** They overlap: nothing but names and marks keeps the installations apart. */
export const vmidRanges = {
  alpha: { min: 100_000, max: 100_059 },
  beta: { min: 100_030, max: 100_089 },
} as const;

/** Where an administrator looks for a free VMID: amid both ranges. */
const handMadeVmids = { min: 100_000, count: 90 };

export interface Cluster {
  simulator: Simulator;
  ledger: Ledger;
  /** Adds a guest with a disk of its own; `null`: no VMID is free. */
  place(guest: Placed): Vm | null;
  /** A file of an administrator on the storage of the seeds. */
  addIso(node: string, name: string): void;
  /** The administrator changed what is his: it counts from now on. */
  accept(): void;
  /** In words; empty while everything hand-made is as its owner left it. */
  changes(): string[];
  close(): Promise<void>;
}

interface Print {
  text: string;
  /** `null` of a file. */
  vm: Vm | null;
}

export interface Placed {
  /** Where the search for a free VMID begins. */
  pick: number;
  type: 'qemu' | 'lxc';
  node: string;
  config: ReadonlyMap<string, string>;
  story: string;
  restoredFrom?: InstallationName | null;
}

export async function startCluster(tls: { key: string; cert: string }): Promise<Cluster> {
  const plain = stepFixture();
  const ids = Object.keys(tokens).map((token) => token.replace(/^.*!/, ''));
  const simulator = await startSimulator({
    fixture: {
      ...plain,
      users: [
        {
          id: 'proxy-operator@pve',
          tokens: ids.map((id) => ({ id, secret: tokenSecret, privsep: false })),
        },
      ],
    },
    tls,
    timeScale: 0.01,
    proxyNetwork: true,
  });
  const ledger = keepLedger(simulator, tokens);
  const handMadeIsos = new Set<string>();
  let accepted = new Map<string, Print>();

  function prints(): Map<string, Print> {
    const found = new Map<string, Print>();
    for (const { vm, entry } of ledger.standing()) {
      if (entry.maker !== 'hand') continue;
      found.set(`${vm.type} ${vm.vmid} (${entry.story})`, { text: printOf(simulator, vm), vm });
    }
    for (const { node, storage, name, size } of simulator.isos()) {
      if (!handMadeIsos.has(`${node} ${name}`)) continue;
      found.set(`${storage}:${name} on ${node}`, { text: String(size), vm: null });
    }
    return found;
  }

  const cluster: Cluster = {
    simulator,
    ledger,
    place: (guest) => placeGuest(simulator, ledger, guest),
    addIso: (node, name) => {
      handMadeIsos.add(`${node} ${name}`);
      addIso(simulator, { file: name, node });
    },
    accept: () => {
      accepted = prints();
    },
    changes: () => {
      const now = prints();
      return [...accepted].flatMap(([what, { text, vm }]) => {
        const seen = now.get(what);
        // A restored backup that stands alone became the Proxy's (ledger.ts).
        if (seen?.text === text || (vm !== null && ledger.entryOf(vm)?.maker !== 'hand')) return [];
        return [`${what} ${seen === undefined ? 'is gone' : `is ${seen.text}, not ${text}`}`];
      });
    },
    close: async () => {
      const { tasks } = simulator.core;
      await Promise.all(tasks.all.filter(({ running }) => running).map((one) => tasks.stop(one)));
      await simulator.close();
    },
  };
  placeFirstGuests(cluster);
  return cluster;
}

/** Everything of a guest that an operator could change. */
function printOf({ cluster }: Simulator, vm: Vm): string {
  const volumes = cluster.storages.volumes.filter(({ vmid }) => vmid === vm.vmid);
  const disks = volumes.map(({ storage, name, node, size }) => [storage, name, node, size]);
  return JSON.stringify([vm.node, vm.running !== null, [...vm.config], [...vm.pending], disks]);
}

function placeGuest(simulator: Simulator, ledger: Ledger, guest: Placed): Vm | null {
  const { pick, type, node, story, restoredFrom } = guest;
  const { min, count } = handMadeVmids;
  const order = Array.from({ length: count }, (_, index) => min + ((pick + index) % count));
  const vmid = order.find((candidate) => !simulator.cluster.vms.has(candidate));
  if (vmid === undefined) return null;
  const config = new Map(guest.config);
  const disk = `${vmid}/vm-${vmid}-disk-0.qcow2`;
  if (type === 'qemu') config.set('scsi0', `local:${disk},size=64M`);
  const vm = newVm(vmid, type, node, config);
  ledger.byHand(vm, story, restoredFrom ?? null);
  simulator.cluster.vms.set(vmid, vm);
  if (type === 'qemu') addDisk(simulator, vm);
  simulator.refreshStats();
  return vm;
}

function placeFirstGuests(cluster: Cluster): void {
  const guests = [
    { pick: 3, type: 'lxc', config: { hostname: 'mail' } },
    {
      pick: 20,
      type: 'qemu',
      config: { name: 'build-server', cores: '4', description: 'by hand' },
    },
    { pick: 40, type: 'qemu', config: { name: 'proxy-old', tags: 'proxy-operator' } },
    { pick: 45, type: 'lxc', config: { hostname: 'db' } },
  ] as const;
  for (const { pick, type, config } of guests) {
    const known = new Map(Object.entries(config));
    cluster.place({ pick, type, node: 'pve1', config: known, story: 'made by hand' });
  }
  cluster.addIso('pve1', 'debian-13.iso');
  // The seed of an installation that is not here.
  cluster.addIso('pve1', 'proxy-p1-abcdef-00000000-000000-seed.iso');
  cluster.accept();
}
