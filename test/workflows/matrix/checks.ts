/** What must hold at the end of every story, whatever happened in it. */
import assert from 'node:assert/strict';
import type { Vm } from '../../simulator/cluster.ts';
import { queryPauseMs, type Story } from './story.ts';
import { machines } from './world.ts';

/** One VM that serves, made as the spec says, with one seed; nothing else of ours. */
export async function expectOneVm(story: Story): Promise<void> {
  const { world, status } = story;
  const isSettled = async (): Promise<boolean> => (await story.state()).removals.length === 0;
  await story.until(isSettled, 'nothing to remove', queryPauseMs);
  const [vm, ...others] = withoutLeftovers(story);
  assert.ok(vm, 'a VM');
  assert.deepEqual(
    others.map(({ vmid }) => vmid),
    [],
    'exactly one VM',
  );
  const { placement, cloudInit } = world.records.object?.spec ?? {};
  const { cores, memoryMiB } = machines[placement?.machineType === 'big' ? 'big' : 'small'];
  const { config } = vm;
  assert.equal(config.get('name'), status()?.vmName);
  assert.equal(vm.vmid, status()?.vmid);
  assert.equal(config.get('cores'), String(cores));
  assert.equal(config.get('memory'), String(memoryMiB));
  assert.match(config.get('scsi0') ?? '', /size=1G/);
  assert.ok(vm.running, 'the VM runs');
  const seedFile = `${config.get('name')}-seed.iso`;
  assert.ok(config.get('ide2')?.includes(seedFile), 'the seed is in the drive');
  const seeds = world.seeds();
  assert.deepEqual(
    seeds.map(({ name }) => name),
    [seedFile],
  );
  assert.ok(cloudInit && seeds[0]?.bytes?.includes(cloudInit), 'the seed holds the cloud-init');
}

/** No VM, no seed, no disk, no finalizer; the run has ended. */
export async function expectCleanSlate(story: Story): Promise<void> {
  const { world } = story;
  await story.until(() => story.ended(), 'the run ends');
  const left = withoutLeftovers(story);
  assert.deepEqual(
    left.map(({ vmid }) => vmid),
    [],
    'no VM is left',
  );
  assert.deepEqual(
    world.seeds().map(({ name }) => name),
    [],
    'no seed is left',
  );
  const owners = new Set(world.simulator.vms().map(({ vmid }) => vmid));
  const orphans = world.simulator.cluster.storages.volumes.filter(
    ({ vmid }) => vmid !== null && !owners.has(vmid),
  );
  assert.deepEqual(
    orphans.map(({ name }) => name),
    [],
    'no disk is left',
  );
  assert.equal(world.records.object, null, 'the finalizer is gone');
}

/** The VM that served runs on with its seed, and its mark says that nobody is to collect it. The run has ended. */
export async function expectRetained(story: Story): Promise<void> {
  const { world } = story;
  await story.until(() => story.ended(), 'the run ends');
  const [vm, ...others] = withoutLeftovers(story);
  assert.ok(vm !== undefined && others.length === 0, 'exactly one VM stays');
  assert.ok(vm.running, 'it runs');
  assert.match(vm.config.get('description') ?? '', /^proxy-operator-managed=retained$/m);
  assert.deepEqual(
    world.seeds().map(({ name }) => name),
    [`${vm.config.get('name')}-seed.iso`],
  );
  assert.equal(world.records.object, null, 'the finalizer is gone');
}

/** Nothing of others was touched, and there was never a VM too many. */
export function expectNoHarm(story: Story, mostVms: number): void {
  const { world } = story;
  assert.deepEqual(world.harm(), [], 'others are left alone');
  assert.ok(world.peak() <= mostVms, `${world.peak()} VMs at once, at most ${mostVms} expected`);
}

/** VMs but for those that the status gives up, with the line that removes them: no API token can clear their lock. */
export function withoutLeftovers(story: Story): Vm[] {
  const given = new Set(leftoversOf(story));
  return story.world.own().filter(({ vmid }) => !given.has(vmid));
}

export function leftoversOf({ world: { records, own } }: Story): number[] {
  const told = records.statuses.flatMap(({ leftovers }) => leftovers.map(({ vmid }) => vmid));
  const locked = own().filter(({ config }) => config.get('lock') === 'clone');
  return told.filter((vmid) => locked.some((vm) => vm.vmid === vmid));
}
