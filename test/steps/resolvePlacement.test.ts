import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resolvePlacement } from '../../activities/resolvePlacement.ts';
import type { ResolvePlacementInput } from '../../workflows/contract/steps.ts';
import { expectReason, hashOf, withSteps, type StepRig } from '../support/stepHarness.ts';

function resolving({ ref }: StepRig, image = 'debian-13'): ResolvePlacementInput {
  return {
    ref,
    provider: 'pve',
    placement: { region: null, zone: 'pve1', machineType: 'small', image },
    specHash: hashOf('#cloud-config\n'),
    deletionPolicy: 'Delete',
  };
}

describe('resolvePlacement', () => {
  it('gives everything the line needs and asks Proxmox for nothing', () =>
    withSteps(async (rig) => {
      rig.configure({ storage: 'local', vlanTag: 4, requestTimeoutSeconds: 20, abortClones: true });
      assert.deepEqual(await rig.run(resolvePlacement, resolving(rig)), {
        ...rig.plan,
        storage: 'local',
        vlanTag: 4,
        requestBoundMs: 20_000,
        abortClones: true,
      });
      assert.deepEqual(rig.simulator.requests, []);
    }));

  it("refuses in the specification's words and names what there is", () =>
    withSteps(async (rig) => {
      const error = await rig.refusal(resolvePlacement, resolving(rig, 'debian-12'));
      expectReason(error, 'PlacementInvalid');
      assert.equal(error.message, 'placement.image "debian-12" is not in proxmox.templates');
      assert.deepEqual([error.errorClass, error.facts.scope], ['Permanent', 'proxy']);
      assert.equal(error.facts.remedy, 'images: debian-13');
    }));

  it('waits for a provider that is not configured', () =>
    withSteps(async (rig) => {
      const error = await rig.refusal(resolvePlacement, { ...resolving(rig), provider: 'x' });
      expectReason(error, 'ProviderUnknown');
      assert.equal(error.errorClass, 'Transient');
    }));
});
