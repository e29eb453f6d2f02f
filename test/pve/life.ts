/** One VM's whole life on the host, each step as the operator runs it, and what must be true after it. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { awaitRunning } from '../../activities/awaitRunning.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { configureVm } from '../../activities/configureVm.ts';
import { listManagedVms } from '../../activities/listManagedVms.ts';
import { pollAgent } from '../../activities/pollAgent.ts';
import { NotYet } from '../../activities/providerError.ts';
import { resizeDisk } from '../../activities/resizeDisk.ts';
import { resolvePlacement } from '../../activities/resolvePlacement.ts';
import { startVm } from '../../activities/startVm.ts';
import { uploadSeed } from '../../activities/uploadSeed.ts';
import { parseMark } from '../../activities/vm/identity.ts';
import { specHash } from '../../activities/vm/specHash.ts';
import type { AllocateVmidResult, Plan, VmRef } from '../../workflows/contract/steps.ts';
import { cloudInit, type Host } from './host.ts';
import { providerName } from './settings.ts';
import { findSeeds, findVms } from './sweep.ts';

const placement = { region: null, zone: null, machineType: 'small', image: 'template' };

/** Makes a VM, finds it again, and looks at what is there. Throws where something is not as it should be. */
export async function live(host: Host, signal: AbortSignal): Promise<void> {
  const plan = await planOf(host);
  const vm = await cloned(host, plan);
  await configured(host, plan, vm);
  const input = { ref: host.ref, plan, vm };
  host.log(`starting VM ${vm.vmid}`);
  await host.finished(
    (await host.patiently(() => host.run(startVm, input))).upid,
    'start',
    vm.vmid,
  );
  await host.patiently(() => host.run(awaitRunning, input));
  const ip = await addressOf(host, input, signal);
  host.log(`VM ${vm.vmid} has the address ${ip}`);
  await foundAgain(host, plan, vm);
  await marked(host, vm);
}

async function planOf(host: Host): Promise<Plan> {
  const wanted = { mode: 'Managed', provider: providerName, placement, cloudInit } as const;
  return host.run(resolvePlacement, {
    ref: host.ref,
    provider: providerName,
    placement,
    specHash: specHash(wanted),
    deletionPolicy: 'Delete',
  });
}

function look(host: Host, plan: Plan, recorded: number[] = []): Promise<AllocateVmidResult> {
  const known = {
    recordedVmids: recorded,
    avoidVmids: [],
    ownFreedVmids: [],
    recordedDiskKeys: {},
  };
  return host.patiently(() => host.run(allocateVmid, { ref: host.ref, plan, ...known }));
}

async function cloned(host: Host, plan: Plan): Promise<VmRef> {
  const found = await look(host, plan);
  assert.equal(found.kind, 'vacant', `a VM of this run is there before it was made: ${found.kind}`);
  if (found.kind !== 'vacant') throw new Error('unreachable');
  const { vmid, templateNode } = found;
  host.log(`cloning ${plan.templateVmid} to ${vmid} on ${plan.node}`);
  const input = { ref: host.ref, plan, vmid, templateNode };
  const { upid } = await host.patiently(() => host.run(cloneTemplate, input));
  const meanwhile = await look(host, plan, [vmid]);
  assert.ok(meanwhile.kind === 'cloning' || meanwhile.kind === 'ours', meanwhile.kind);
  assert.equal(meanwhile.vmid, vmid, 'a look during the clone finds another VMID');
  await host.finished(upid, 'clone', vmid);
  return { provider: providerName, vmid, node: plan.node, name: plan.vmName };
}

async function configured(host: Host, plan: Plan, vm: VmRef): Promise<void> {
  const { ref } = host;
  const { vmid } = vm;
  // Twice: every step may be cut off and run again.
  for (let round = 0; round < 2; round += 1) {
    host.log(round === 0 ? `seed, config and size of VM ${vmid}` : 'the same again');
    const seed = await host.patiently(() => host.run(uploadSeed, { ref, plan, vm }));
    await host.finished(seed.upid, 'upload', vmid);
    const config = { kind: 'start', ref, plan, vm, seedBytes: seed.bytes, clearProtection: true } as const; // prettier-ignore
    const { changed } = await host.patiently(() => host.run(configureVm, config));
    if (round > 0) assert.deepEqual(changed, [], 'a second config write changes something');
    const { upid } = await host.patiently(() => host.run(resizeDisk, { ref, plan, vm }));
    if (round > 0) assert.equal(upid, null, 'the disk is grown twice');
    await host.finished(upid, 'resize', vmid);
  }
  assert.deepEqual(await findSeeds(host, ref.uid), [plan.seedFile]);
}

async function addressOf(
  host: Host,
  input: Parameters<typeof pollAgent>[2],
  signal: AbortSignal,
): Promise<string> {
  const scheduledAtMs = Date.now();
  for (;;) {
    try {
      const call = { signal, writesUntilMs: Number.MAX_SAFE_INTEGER };
      const attempt = { call, scheduledAtMs, heartbeat: () => undefined, log: host.deps.log };
      return (await pollAgent(host.deps, attempt, input)).ip;
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      await delay(error.retryAfterMs, undefined, { signal });
    }
  }
}

async function foundAgain(host: Host, plan: Plan, vm: VmRef): Promise<void> {
  const again = await look(host, plan);
  assert.equal(again.kind, 'ours');
  assert.equal(again.vmid, vm.vmid);
  const { vms } = await host.run(listManagedVms, { ref: host.ref, provider: providerName });
  assert.deepEqual(
    vms.map(({ vmid, name }) => ({ vmid, name })),
    [{ vmid: vm.vmid, name: vm.name }],
  );
  assert.equal((await findVms(host, host.ref.uid)).length, 1);
}

async function marked(host: Host, vm: VmRef): Promise<void> {
  host.log(`changing the deletion policy in the mark of VM ${vm.vmid}, which runs`);
  const input = { kind: 'mark', ref: host.ref, vm, deletionPolicy: 'Retain', retained: false } as const; // prettier-ignore
  await host.patiently(() => host.run(configureVm, input));
  const { values } = await host.api.getVmConfig(vm.node, vm.vmid);
  assert.equal(parseMark(values.description ?? '')?.deletionPolicy, 'Retain');
}
