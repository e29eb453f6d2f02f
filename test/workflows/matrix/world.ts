/** What one story happens in: a cluster with other people's guests on it, and one Proxy object. */
import { createHash, randomUUID } from 'node:crypto';
import { vmidCandidates } from '../../../activities/vm/identity.ts';
import type { DeletionPolicy, ProxyRef } from '../../../workflows/contract/proxy.ts';
import { startSimulator, type IsoFile, type Simulator } from '../../simulator/simulator.ts';
import type { Vm } from '../../simulator/cluster.ts';
import { stepFixture } from '../../support/stepFixture.ts';
import { objectRecords, type ObjectRecords } from './records.ts';

export const vmidRange = { min: 100_000, max: 100_099 };
const templates = [9001, 9002, 9003];

/** What the Proxy asks for, and what it asks for after a change of its spec. */
export const machines = {
  small: { cores: 1, memoryMiB: 512, diskGiB: 1 },
  big: { cores: 2, memoryMiB: 1024, diskGiB: 1 },
} as const;

/** What differs from story to story before it begins. */
export interface Circumstances {
  /** The provider's `abortClones`. */
  abortClones: boolean;
  deletionPolicy: DeletionPolicy;
}

export interface World {
  abortClones: boolean;
  ref: ProxyRef;
  simulator: Simulator;
  records: ObjectRecords;
  /** VMs that the operator made and that are there now. */
  own: () => Vm[];
  seeds: () => IsoFile[];
  /** Greatest number of own VMs that existed at one time. */
  peak: () => number;
  /** What was done to guests of others, in words; empty when they were left alone. */
  harm: () => string[];
  close: () => Promise<void>;
}

/** A container and a VM made by hand sit on the first two VMIDs that the Proxy would take. */
export async function createWorld(
  tls: { key: string; cert: string },
  { abortClones, deletionPolicy }: Circumstances,
): Promise<World> {
  const ref = { namespace: 'egress', name: 'p1', uid: randomUUID() };
  const simulator = await startSimulator({ fixture: stepFixture(), tls, timeScale: 0.01 });
  const foreign = placeForeignGuests(simulator, ref);
  const before = fingerprint(simulator, [...foreign, ...templates]);
  const others = new Set([...foreign, ...templates]);
  const own = (): Vm[] => simulator.vms().filter(({ vmid }) => !others.has(vmid));
  const records = objectRecords(ref, {
    provider: 'pve',
    placement: { machineType: 'small', image: 'debian-13' },
    cloudInit: '#cloud-config\n',
    drainSeconds: 0,
    deletionPolicy,
  });
  return {
    ref,
    abortClones,
    simulator,
    records,
    own,
    seeds: () => simulator.isos(),
    peak: watchPeak(simulator, own),
    harm: () => [
      ...changesTo(simulator, others),
      ...(fingerprint(simulator, [...others]) === before ? [] : ['a foreign config changed']),
    ],
    close: async () => {
      const { tasks } = simulator.core;
      const running = tasks.all.filter((task) => task.running);
      await Promise.all(running.map((task) => tasks.stop(task)));
      await simulator.close();
    },
  };
}

function placeForeignGuests(simulator: Simulator, { uid }: ProxyRef): number[] {
  const candidates = vmidCandidates(uid, vmidRange.min, vmidRange.max);
  const [container = 0, handMade = 0] = candidates;
  simulator.addGuest({
    vmid: container,
    type: 'lxc',
    node: 'pve1',
    config: { hostname: 'mail' },
  });
  simulator.addGuest({
    vmid: handMade,
    type: 'qemu',
    node: 'pve1',
    config: { name: 'build-server', cores: '4', memory: '4096', description: 'made by hand' },
  });
  simulator.refreshStats();
  return [container, handMade];
}

function fingerprint(simulator: Simulator, vmids: readonly number[]): string {
  const hash = createHash('sha256');
  for (const vmid of [...vmids].sort((a, b) => a - b)) {
    const vm = simulator.cluster.vms.get(vmid);
    hash.update(JSON.stringify([vmid, vm?.node, [...(vm?.config ?? [])]]));
  }
  return hash.digest('hex');
}

/** A clone is a change to what it makes, not to its template. */
function changesTo({ requests }: Simulator, others: ReadonlySet<number>): string[] {
  return requests
    .filter(({ method, path }) => method !== 'GET' && !path.endsWith('/clone'))
    .filter(({ path }) => others.has(Number(/\/(?:qemu|lxc)\/(\d+)/.exec(path)?.[1])))
    .map(({ method, path }) => `${method} ${path}`);
}

function watchPeak({ cluster }: Simulator, own: () => Vm[]): () => number {
  let peak = 0;
  const set = cluster.vms.set.bind(cluster.vms);
  cluster.vms.set = (vmid, vm) => {
    set(vmid, vm);
    peak = Math.max(peak, own().length);
    return cluster.vms;
  };
  return () => peak;
}
