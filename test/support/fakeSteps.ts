/** The fake steps of the fake world: making and keeping, taking away, and none of a provider's. */
import { ApplicationFailure } from '@temporalio/common';
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import type { AllocateVmidResult, Plan } from '../../workflows/contract/steps.ts';
import type { Steps } from '../../workflows/contract/stepTable.ts';
import type { FakeVm, FakeWorld } from './fakeWorld.ts';

/** Fake activities over a world. They behave as the real ones promise to (contract/stepTable.ts). */
export function fakeSteps(world: FakeWorld): Steps {
  let tasks = 0;
  const upid = (kind: string): string => `UPID:pv1-1:${kind}:${(tasks += 1)}:`;
  return {
    claimProxy: async () => {
      await world.enter('claimProxy');
      if (!world.desired) return { found: false };
      const firstClaim = !world.finalizer && !world.deleting;
      world.finalizer ||= !world.deleting;
      const { desired, deleting, recorded } = world;
      return { found: true, deleting, firstClaim, desired, recorded };
    },
    resolvePlacement: async ({ specHash, provider, deletionPolicy }) => {
      await world.enter('resolvePlacement');
      return world.planFor(specHash, provider, deletionPolicy);
    },
    allocateVmid: async ({ plan, avoidVmids, ownFreedVmids, existingOnly }) => {
      await world.enter('allocateVmid');
      const found = world.finds.shift();
      if (found) return found;
      if (existingOnly === true) return lookAt(world, plan, avoidVmids);
      const mine = world.vmNamed(plan.vmName, avoidVmids);
      if (mine) {
        const { vmid, power, configured: seedAttached } = mine;
        return { kind: 'ours', vmid, node: mine.node ?? 'pv1-1', power, seedAttached };
      }
      const cools = (vmid: number): boolean =>
        world.coolingVmids.has(vmid) && !ownFreedVmids.includes(vmid);
      const taken = (vmid: number): boolean =>
        world.vms.has(vmid) ||
        world.takenVmids.has(vmid) ||
        avoidVmids.includes(vmid) ||
        cools(vmid);
      let vmid = plan.vmidMin;
      while (taken(vmid)) vmid += 1;
      return {
        kind: 'vacant',
        vmid,
        templateNode: 'pv1-1',
        diskKeys: ['scsi0'],
        protectionInherited: false,
      };
    },
    cloneTemplate: async ({ plan, vmid }) => {
      await world.enter('cloneTemplate');
      const { vmName: name, specHash, deletionPolicy: policy } = plan;
      const ip = world.fixedIp ?? `192.0.2.${vmid - plan.vmidMin + 10}`;
      const blank = { power: 'stopped', configured: false, retained: false } as const;
      world.vms.set(vmid, { vmid, name, specHash, ip, policy, ...blank });
      world.peak = Math.max(world.peak, world.vms.size);
      return { upid: upid('clone'), own: true };
    },
    uploadSeed: async ({ plan }) => {
      await world.enter('uploadSeed');
      world.seeds.add(plan.seedFile);
      return { upid: upid('upload'), node: 'pv1-1', bytes: 374784 };
    },
    configureVm: async (input) => {
      await world.enter('configureVm');
      if (input.kind === 'mark') {
        const found = world.vms.get(input.vm.vmid);
        if (found?.name !== input.vm.name) return { changed: [], found: false };
        const { deletionPolicy: policy, retained } = input;
        if (retained && found.deadLock !== undefined) {
          return { changed: [], found: true, unmarkedFor: found.deadLock };
        }
        Object.assign(found, { policy, retained });
        return { changed: ['description'], found: true };
      }
      if (input.kind === 'mend') {
        const found = world.at(input.vm.vmid);
        const changed = [found.untagged ? 'tags' : '', found.agentOff ? 'agent' : ''];
        Object.assign(found, { untagged: false, agentOff: false });
        if (input.emptyDrive) Object.assign(found, { configured: false });
        return { changed: changed.filter((key) => key !== ''), found: true };
      }
      world.at(input.vm.vmid).configured = true;
      return { changed: ['ide2'], found: true };
    },
    resizeDisk: async () => {
      await world.enter('resizeDisk');
      return { upid: upid('resize') };
    },
    startVm: async ({ vm }) => {
      await world.enter('startVm');
      const started = world.at(vm.vmid);
      started.power = 'running';
      started.starts = (started.starts ?? 0) + 1;
      return { upid: upid('start') };
    },
    awaitTask: async () => {
      await world.enter('awaitTask');
      return { warnings: 0 };
    },
    awaitRunning: async ({ vm }) => {
      await world.enter('awaitRunning');
      return { node: vm.node };
    },
    pollAgent: async ({ vm }) => {
      await world.enter('pollAgent');
      const asked = world.at(vm.vmid);
      if (asked.silent) throw silentAgent(vm.vmid);
      return { ip: asked.ip, node: asked.node ?? vm.node };
    },
    publishStatus: async ({ status, events }) => {
      await world.enter('publishStatus');
      world.statuses.push(status);
      world.events.push(...events);
      for (const tell of world.onPublish) tell();
      return { found: world.desired !== null };
    },
    listManagedVms: async ({ recorded = [] }) => {
      await world.enter('listManagedVms');
      const isSilent = ({ node = 'pv1-1' }: FakeVm): boolean => world.deadNodes.has(node);
      const unread = [...world.vms.values()].find(
        (vm) => isSilent(vm) && recorded.includes(vm.vmid),
      );
      if (unread) throw silentNode(unread);
      // Whose node is silent has no name in the listing, and is not read unless it was recorded.
      const vms = [...world.vms.values()].filter((vm) => !isSilent(vm));
      return {
        vms: vms.map(({ vmid, name, specHash }) => ({ vmid, node: 'pv1-1', name, specHash })),
        census: null,
      };
    },
    stopVm: async ({ vm, ownClone }) => {
      await world.enter('stopVm');
      if (world.abortClones && ownClone !== null) {
        world.abortedClones.push(ownClone);
        if (!world.abortsComeTooLate) world.vms.delete(vm.vmid);
        return { kind: 'aborted' };
      }
      const found = world.vms.get(vm.vmid);
      if (found?.name !== vm.name) return { kind: 'gone' };
      if (found.power === 'stopped') return { kind: 'stopped', node: 'pv1-1' };
      found.power = 'stopped';
      return { kind: 'task', node: 'pv1-1', upid: upid('stop') };
    },
    destroyVm: async ({ vm }) => {
      await world.enter('destroyVm');
      if (world.vms.get(vm.vmid)?.name !== vm.name) return { kind: 'gone' };
      world.vms.delete(vm.vmid);
      world.coolingVmids.add(vm.vmid);
      return { kind: 'task', node: 'pv1-1', upid: upid('destroy') };
    },
    deleteSeed: async ({ seedFile }) => {
      await world.enter('deleteSeed');
      if (!world.seeds.delete(seedFile)) return { kind: 'gone' };
      return { kind: 'task', upid: upid('imgdel') };
    },
    releaseProxy: async ({ events }) => {
      await world.enter('releaseProxy');
      world.events.push(...events);
      const released = world.finalizer;
      world.finalizer = false;
      world.desired = null;
      return { released };
    },
    probeProxies: () => Promise.reject(new Error('no prober in this world')),
    watchVms: () => Promise.reject(new Error('nobody watches in this world')),
    checkNode: () => Promise.reject(new Error('no nodes in this world')),
    publishHealth: () => Promise.reject(new Error('no providers in this world')),
    listSeeds: () => Promise.reject(new Error('no collection in this world')),
    signalOrphan: () => Promise.reject(new Error('no collection in this world')),
    publishOrphans: () => Promise.reject(new Error('no collection in this world')),
  };
}

/** A fresh look at a VM that served, as facts/existing.ts promises it. */
function lookAt(
  world: FakeWorld,
  { vmName, vmidMin, seedFile, isoStorage }: Plan,
  avoid: readonly number[],
): AllocateVmidResult {
  const vm = world.vmNamed(vmName, avoid);
  if (!vm) return { kind: 'gone', vmid: vmidMin };
  const node = vm.node ?? 'pv1-1';
  if (world.deadNodes.has(node)) throw silentNode(vm);
  if (vm.deadLock !== undefined) {
    return { kind: 'stuck', vmid: vm.vmid, node, lock: vm.deadLock, remedy: 'qm unlock' };
  }
  const listed = world.seeds.has(seedFile) ? 'listed' : 'missing';
  return {
    kind: 'existing',
    vmid: vm.vmid,
    node,
    power: vm.power,
    ioError: vm.ioError === true,
    lock: null,
    tagged: vm.untagged !== true,
    agentEnabled: vm.agentOff !== true,
    seed: vm.configured ? listed : 'none',
    isoStorage,
  };
}

function silentNode({ vmid, node = 'pv1-1' }: FakeVm): ApplicationFailure {
  const facts: FailureFacts = { reason: 'Unreachable', scope: 'provider', node };
  return ApplicationFailure.create({
    type: 'Transient',
    message: `node ${node} of VM ${vmid} does not answer`,
    nonRetryable: true,
    details: [facts],
  });
}

function silentAgent(vmid: number): ApplicationFailure {
  const facts: FailureFacts = { reason: 'AgentSilent', scope: 'proxy', vmid };
  return ApplicationFailure.create({
    type: 'Transient',
    message: `the guest agent of VM ${vmid} does not answer`,
    nonRetryable: true,
    details: [facts],
  });
}
