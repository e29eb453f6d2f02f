/** VMs and seeds of Proxies that are gone, placed into a step test's cluster. */
import assert from 'node:assert/strict';
import { listManagedVms } from '../../activities/listManagedVms.ts';
import { vmNameFor } from '../../activities/vm/identity.ts';
import type { Census } from '../../workflows/contract/collection.ts';
import { testInstallation } from './aPlan.ts';
import { addIso } from './simulatedVolumes.ts';
import type { PlacedVm, StepRig } from './stepHarness.ts';

/** A UID that no Proxy of the rig has. */
export const lostUid = '99999999-1111-4111-8111-111111111111';

/** Name of a VM of that UID, of our installation unless told otherwise. */
export function nameOf(
  uid: string,
  { hex = testInstallation.hex, spec = 'abcdef' }: { hex?: string; spec?: string } = {},
): string {
  return vmNameFor({ proxyName: 'p1', uid, installationHex: hex, specHash: spec });
}

/** A VM of ours without a Proxy, stopped on pve1 unless told otherwise. */
export function placeOrphan(rig: StepRig, fields: PlacedVm = {}): void {
  const uid = fields.uid ?? lostUid;
  rig.place({ vmid: 300, uid, ...fields, config: { name: nameOf(uid), ...fields.config } });
}

/** A seed of that VM name on a node; `null` for a shared storage. */
export function addSeed(
  rig: StepRig,
  vmName: string,
  node: string | null = 'pve1',
  storage = 'proxy-seeds',
): string {
  const file = `${vmName}-seed.iso`;
  addIso(rig.simulator, { file, node, storage });
  return file;
}

/** `listManagedVms` as the collection asks for it. */
export async function census(rig: StepRig): Promise<Census> {
  const { vms, census: taken } = await rig.run(listManagedVms, { ref: null, provider: 'pve' });
  assert.deepEqual(vms, []);
  assert.ok(taken);
  return taken;
}
