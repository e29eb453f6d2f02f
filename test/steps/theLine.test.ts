import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allocateVmid } from '../../activities/allocateVmid.ts';
import { awaitRunning } from '../../activities/awaitRunning.ts';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { configureVm } from '../../activities/configureVm.ts';
import { pollAgent } from '../../activities/pollAgent.ts';
import { NotYet } from '../../activities/providerError.ts';
import { resizeDisk } from '../../activities/resizeDisk.ts';
import { startVm } from '../../activities/startVm.ts';
import { uploadSeed } from '../../activities/uploadSeed.ts';
import { readSeed } from '../simulator/iso.ts';
import { eventually } from '../support/eventually.ts';
import { seedOf, withSteps, type StepRig } from '../support/stepHarness.ts';
import type { PollAgentResult, VmStepInput } from '../../workflows/contract/steps.ts';

/** As Temporal repeats a poll. */
async function polled(rig: StepRig, input: VmStepInput): Promise<PollAgentResult> {
  const scheduledAtMs = Date.now();
  const answers: PollAgentResult[] = [];
  await eventually(async () => {
    try {
      answers.push(await rig.run(pollAgent, input, { scheduledAtMs }));
      return true;
    } catch (error) {
      if (error instanceof NotYet) return false;
      throw error;
    }
  });
  const [answer] = answers;
  assert.ok(answer);
  return answer;
}

describe('the line', () => {
  it('makes one VM with its seed, config, size and address, and every step may run twice', () =>
    withSteps(async (rig) => {
      const { ref, vmid, simulator } = rig;
      const plan = { ...rig.plan, diskGiB: 1 };
      const vm = rig.vmRef();
      const input: VmStepInput = { ref, plan, vm };
      const looking = {
        ref,
        plan,
        recordedVmids: [],
        avoidVmids: [],
        ownFreedVmids: [],
        recordedDiskKeys: {},
      };
      const found = await rig.run(allocateVmid, looking);
      assert.deepEqual(found, {
        kind: 'vacant',
        vmid,
        templateNode: 'pve1',
        diskKeys: ['scsi0'],
        protectionInherited: false,
      });

      const cloning = { ref, plan, vmid, templateNode: 'pve1' };
      await rig.finish((await rig.run(cloneTemplate, cloning)).upid);
      assert.deepEqual(await rig.run(cloneTemplate, cloning), { upid: null, own: false });
      assert.equal((await rig.run(allocateVmid, looking)).kind, 'ours');

      for (let round = 0; round < 2; round += 1) {
        const { upid, node, bytes } = await rig.run(uploadSeed, { ref, plan, vm });
        await rig.finish(upid);
        assert.equal(node, 'pve1');
        const sized = { seedBytes: bytes, clearProtection: false };
        const configure = { kind: 'start', ref, plan, vm, ...sized } as const;
        const { changed } = await rig.run(configureVm, configure);
        const all = ['cores', 'memory', 'agent', 'tags', 'ide2'];
        assert.deepEqual(changed, round === 0 ? all : []);
        await rig.finish((await rig.run(resizeDisk, input)).upid);
      }
      await rig.finish((await rig.run(startVm, input)).upid);
      assert.deepEqual(await rig.run(startVm, input), { upid: null });
      assert.deepEqual(await rig.run(awaitRunning, input), { node: 'pve1' });
      const { ip } = await polled(rig, input);

      const made = simulator.vms().filter(({ config }) => config.get('name') === plan.vmName);
      assert.deepEqual(
        made.map((one) => one.vmid),
        [vmid],
      );
      const config = made[0]?.config;
      assert.equal(config?.get('tags'), 'proxy_operator');
      assert.equal(config?.get('agent'), '1');
      assert.match(config?.get('scsi0') ?? '', /size=1G/);
      assert.match(config?.get('description') ?? '', new RegExp(`proxy-operator-uid=${ref.uid}`));
      assert.equal(made[0]?.running?.address, ip);
      const seeds = simulator.isos().filter(({ name }) => name === seedOf(plan));
      assert.equal(seeds.length, 1);
      const seed = readSeed(seeds[0]?.bytes ?? Buffer.alloc(0));
      assert.equal(seed?.userData, '#cloud-config\n');
      assert.equal(rig.sent('POST', /\/clone$/).length, 1);
      assert.equal(rig.sent('PUT', /\/config$/).length, 1);
      assert.equal(rig.sent('PUT', /\/resize$/).length, 1);
      assert.equal(rig.sent('POST', /\/status\/start$/).length, 1);
    }));
});
