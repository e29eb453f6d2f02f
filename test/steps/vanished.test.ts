/** A VM that is gone while it is made: never the end of a line, always a fresh look (specification, Error classes). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitRunning } from '../../activities/awaitRunning.ts';
import { configureVm } from '../../activities/configureVm.ts';
import { pollAgent } from '../../activities/pollAgent.ts';
import type { ProviderError } from '../../activities/providerError.ts';
import { resizeDisk } from '../../activities/resizeDisk.ts';
import { startVm } from '../../activities/startVm.ts';
import { uploadSeed } from '../../activities/uploadSeed.ts';
import { writes } from '../support/removals.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts';

/** The steps of the line that need the VM, each as the one that finds it gone. */
const steps: Record<string, (rig: StepRig) => Promise<ProviderError>> = {
  uploadSeed: (rig) => rig.refusal(uploadSeed, about(rig)),
  configureVm: (rig) =>
    rig.refusal(configureVm, {
      kind: 'start',
      ...about(rig),
      seedBytes: 1,
      clearProtection: false,
    }),
  resizeDisk: (rig) => rig.refusal(resizeDisk, about(rig)),
  startVm: (rig) => rig.refusal(startVm, about(rig)),
  awaitRunning: (rig) => rig.refusal(awaitRunning, about(rig)),
  pollAgent: (rig) => rig.refusal(pollAgent, about(rig)),
};

function about(rig: StepRig): Parameters<typeof startVm>[2] {
  return { ref: rig.ref, plan: { ...rig.plan, diskGiB: 1 }, vm: rig.vmRef() };
}

function expectLookAgain(error: ProviderError): void {
  expectReason(error, 'VmVanished');
  assert.deepEqual([error.errorClass, error.facts.goBack], ['Transient', true]);
}

describe('a VM that is gone while it is made', () => {
  for (const [name, meet] of Object.entries(steps)) {
    it(`is looked for again when ${name} does not find it listed, and nothing is changed`, () =>
      withSteps(async (rig) => {
        expectLookAgain(await meet(rig));
        assert.deepEqual(writes(rig), []);
      }));

    it(`is looked for again when ${name} is told that its config does not exist`, () =>
      withSteps(async (rig) => {
        rig.place();
        const reason = `Configuration file 'nodes/pve1/qemu-server/${rig.vmid}.conf' does not exist`;
        const action = { kind: 'status', status: 500, reason, when: 'before' } as const;
        rig.simulator.faults.push({ path: /\/config$/, action });
        expectLookAgain(await meet(rig));
        assert.deepEqual(writes(rig), []);
      }));
  }
});
