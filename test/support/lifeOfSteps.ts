/** A VM's whole life, step by step as the workflows order it, without any memory of what was done before. */
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { awaitRunning } from '../../activities/awaitRunning.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { configureVm } from '../../activities/configureVm.ts';
import { deleteSeed } from '../../activities/deleteSeed.ts';
import { destroyVm } from '../../activities/destroyVm.ts';
import { pollAgent } from '../../activities/pollAgent.ts';
import { NotYet } from '../../activities/providerError.ts';
import { resizeDisk } from '../../activities/resizeDisk.ts';
import { startVm } from '../../activities/startVm.ts';
import { stopVm } from '../../activities/stopVm.ts';
import { uploadSeed } from '../../activities/uploadSeed.ts';
import type { DeleteSeedInput } from '../../workflows/contract/removalSteps.ts';
import type {
  AllocateVmidInput,
  AllocateVmidResult,
  Plan,
} from '../../workflows/contract/steps.ts';
import { eventually } from './eventually.ts';
import { removing } from './removals.ts';
import type { StepRig } from './stepHarness.ts';

/** Where a line may be cut short; nothing it learnt until then is kept. */
export const stages = ['clone', 'upload', 'configure', 'resize', 'start', 'address'] as const;
export type Stage = (typeof stages)[number];

/** Input of allocateVmid for a run that knows nothing of earlier ones, unless told so. */
export function looking(
  { ref, plan }: StepRig,
  fields: Partial<AllocateVmidInput> = {},
): AllocateVmidInput {
  const nothing = { recordedVmids: [], avoidVmids: [], ownFreedVmids: [], recordedDiskKeys: {} };
  return { ref, plan, ...nothing, ...fields };
}

/** Runs the line up to and with `last`; gives the address, if it came that far. Throws as the steps do. */
export async function runLine(
  rig: StepRig,
  plan: Plan = rig.plan,
  last: Stage = 'address',
): Promise<string | null> {
  const { ref } = rig;
  const found = await rig.run(allocateVmid, looking(rig, { plan }));
  const vmid = await clonedOrFound(rig, plan, found);
  if (last === 'clone') return null;
  const input = { ref, plan, vm: rig.vmRef({ vmid, name: plan.vmName }) };
  if (found.kind !== 'ours' || found.power !== 'running') {
    const { upid, bytes: seedBytes } = await rig.run(uploadSeed, input);
    await rig.finish(upid);
    if (last === 'upload') return null;
    const configuring = { kind: 'start', ...input, seedBytes, clearProtection: true } as const;
    await rig.run(configureVm, configuring);
    if (last === 'configure') return null;
    await rig.finish((await rig.run(resizeDisk, input)).upid);
    if (last === 'resize') return null;
    await rig.finish((await rig.run(startVm, input)).upid);
    if (last === 'start') return null;
  }
  await rig.run(awaitRunning, input);
  return polled(rig, input);
}

async function clonedOrFound(rig: StepRig, plan: Plan, found: AllocateVmidResult): Promise<number> {
  if (found.kind === 'ours') return found.vmid;
  if (found.kind !== 'vacant') throw new Error(`the line cannot go on with ${found.kind}`);
  const { vmid, templateNode } = found;
  await rig.finish((await rig.run(cloneTemplate, { ref: rig.ref, plan, vmid, templateNode })).upid);
  return vmid;
}

/** As Temporal repeats a poll. */
async function polled(rig: StepRig, input: Parameters<typeof pollAgent>[2]): Promise<string> {
  const scheduledAtMs = Date.now();
  const ends: (string | Error)[] = [];
  await eventually(async () => {
    try {
      ends.push((await rig.run(pollAgent, input, { scheduledAtMs })).ip);
    } catch (error) {
      if (error instanceof NotYet) return false;
      ends.push(error instanceof Error ? error : new Error(String(error)));
    }
    return true;
  });
  const [end] = ends;
  if (typeof end === 'string') return end;
  throw end ?? new Error('the poll did not end');
}

/** Takes VM and seed away, as a deletion does. Throws as the steps do. */
export async function runRemoval(
  rig: StepRig,
  plan: Plan = rig.plan,
  node = 'pve1',
): Promise<void> {
  rig.records.markDeleting(rig.ref);
  const input = removing(rig, { vm: rig.vmRef({ name: plan.vmName, node }) });
  await rounds(rig, 'stop', async () => {
    const stopping = await rig.run(stopVm, input);
    return stopping.kind === 'task' ? stopping.upid : null;
  });
  await rounds(rig, 'destroy', async () => {
    const destroying = await rig.run(destroyVm, input);
    return destroying.kind === 'task' ? destroying.upid : null;
  });
  const seed = seedDeletion(rig, node, plan);
  await rounds(rig, 'seedDelete', async () => {
    const deleting = await rig.run(deleteSeed, seed);
    return deleting.kind === 'task' ? deleting.upid : null;
  });
}

/** Input of deleteSeed for the seed of the rig's own VM on a node. */
export function seedDeletion(
  { ref, vmid, plan: own }: StepRig,
  node: string,
  { vmName, seedFile, isoStorage }: Plan = own,
): DeleteSeedInput {
  return { ref, provider: 'pve', vmName, seedFile, node, vmid, isoStorage, orphan: false };
}

/** Until there is nothing left to wait for. */
async function rounds(
  rig: StepRig,
  what: string,
  ask: () => Promise<string | null>,
): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    const upid = await ask();
    if (upid === null) return;
    await rig.finish(upid);
  }
  throw new Error(`${what} does not come to its end`);
}
