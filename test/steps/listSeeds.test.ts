import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cloneTemplate } from '../../activities/cloneTemplate.ts';
import { listSeeds } from '../../activities/listSeeds.ts';
import { installationHex } from '../../activities/vm/identity.ts';
import type { ListSeedsInput, OrphanSeed } from '../../workflows/contract/collection.ts';
import { eventually } from '../support/eventually.ts';
import { addSeed, lostUid, nameOf, placeOrphan } from '../support/orphanRig.ts';
import { addIso } from '../support/simulatedVolumes.ts';
import { writes } from '../support/removals.ts';
import { stepFixture } from '../support/stepFixture.ts';
import {
  expectReason,
  hurry,
  longClones,
  withSteps,
  type StepRig,
} from '../support/stepHarness.ts';

const lost = nameOf(lostUid);

async function seeds(rig: StepRig, fields: Partial<ListSeedsInput> = {}): Promise<OrphanSeed[]> {
  const input = { provider: 'pve', due: [], knownVmids: {}, ...fields };
  return (await rig.run(listSeeds, input)).orphans;
}

/** What may need the one orphan seed on pve1. */
async function heldBy(rig: StepRig, fields: Partial<ListSeedsInput> = {}): Promise<string | null> {
  const [seed] = await seeds(rig, { due: [`pve1 ${lost}-seed.iso`], ...fields });
  assert.ok(seed?.examined);
  return seed.heldBy;
}

describe('listSeeds', () => {
  it('finds seeds of ours on every node whose UID no Proxy and no VM has', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost, 'pve1');
      addSeed(rig, lost, 'pve2');
      addSeed(rig, rig.plan.vmName);
      const found = await seeds(rig);
      assert.deepEqual(
        found.map(({ node, file }) => `${node} ${file}`),
        [`pve1 ${lost}-seed.iso`, `pve2 ${lost}-seed.iso`],
      );
      assert.equal(found[0]?.uidPrefix, lostUid.slice(0, 8));
      assert.deepEqual(writes(rig), []);
    }));

  it('finds each seed of a shared storage once', () =>
    withSteps(async (rig) => {
      rig.configure({ isoStorage: 'shared-images' });
      addSeed(rig, lost, null, 'shared-images');
      assert.equal((await seeds(rig)).length, 1);
    }));

  it('does not see what is not ours: files of others, and of another installation', () =>
    withSteps(async (rig) => {
      addIso(rig.simulator, { file: 'debian-13.iso', node: 'pve1' });
      addIso(rig.simulator, { file: 'proxy-by-hand-seed.iso', node: 'pve1' });
      addSeed(rig, nameOf(lostUid, { hex: installationHex('elsewhere') }));
      assert.deepEqual(await seeds(rig), []);
    }));

  it('leaves a seed to the VM of its UID, whatever spec that was made for', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost);
      placeOrphan(rig, { node: 'pve2', config: { name: nameOf(lostUid, { spec: '777777' }) } });
      assert.deepEqual(await seeds(rig), []);
    }));

  it('names a node that is down, and goes on with the others', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost, 'pve1');
      addSeed(rig, lost, 'pve2');
      rig.simulator.setNode('pve2', { state: 'dead' });
      const result = await rig.run(listSeeds, { provider: 'pve', due: [], knownVmids: {} });
      assert.deepEqual(result.silentNodes, ['pve2']);
      assert.equal(result.orphans.length, 1);
    }));

  it('lists seeds before VMs before Proxies', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost);
      const { survey } = rig.records;
      const paths: string[] = [];
      rig.records.survey = () => {
        paths.push(...rig.simulator.requests.map(({ path }) => path));
        return survey();
      };
      await seeds(rig);
      const lastSeeds = paths.findLastIndex((path) => path.endsWith('/content'));
      const vms = paths.findIndex((path) => path === '/cluster/resources');
      assert.ok(lastSeeds >= 0 && vms > lastSeeds, paths.join(' '));
    }));

  it('concludes nothing without the right to see VMs', () =>
    withSteps(
      async (rig) => {
        const input = { provider: 'pve', due: [], knownVmids: {} };
        expectReason(await rig.refusal(listSeeds, input), 'ListingIncomplete');
      },
      {
        fixture: stepFixture({
          acls: [
            { path: '/storage', principal: 'proxy-operator@pve', role: 'ProxyOperatorSeeds' },
            { path: '/nodes', principal: 'proxy-operator@pve', role: 'ProxyOperator' },
          ],
        }),
      },
    ));

  it('reads no config before a seed is due', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost);
      rig.place();
      const [seed] = await seeds(rig);
      assert.equal(seed?.examined, false);
      assert.deepEqual(rig.sent('GET', /\/config$/), []);
    }));
});

describe('a seed that is due', () => {
  it('is needed by nobody when no VM names it', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost);
      rig.place();
      rig.place({
        vmid: 301,
        config: { name: 'web-1', ide2: 'proxy-seeds:iso/other.iso,media=cdrom' },
      });
      assert.equal(await heldBy(rig), null);
    }));

  it('is held by a VM that has it in any drive, whatever the VM is called', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost);
      const drive = `proxy-seeds:iso/${lost}-seed.iso,media=cdrom`;
      rig.place({ vmid: 301, config: { name: 'web-1', sata3: drive } });
      assert.match((await heldBy(rig)) ?? '', /^VM 301 on pve1 names it/);
    }));

  it('is held by the VM of its name that the listing shows under another one', () =>
    withSteps(
      async (rig) => {
        addSeed(rig, lost);
        rig.place({ vmid: 301, config: { name: 'web-1' } }).config.set('name', lost);
        assert.match((await heldBy(rig)) ?? '', /has its name/);
      },
      // The statistics, with the name in the listing, are renewed every ten seconds.
      { timeScale: 1 },
    ));

  it('is held by a VM on a node that does not answer, when the storage is shared', () =>
    withSteps(async (rig) => {
      rig.configure({ isoStorage: 'shared-images' });
      addSeed(rig, lost, null, 'shared-images');
      rig.place({ vmid: 301, node: 'pve2', config: { name: 'web-1' } });
      rig.simulator.setNode('pve2', { state: 'dead' });
      assert.match((await heldBy(rig)) ?? '', /does not answer/);
    }));

  it('is held while a VM that has no name yet is being made', () =>
    withSteps(async (rig) => {
      const { ref, plan, vmid } = rig;
      addSeed(rig, lost);
      const { upid } = await rig.run(cloneTemplate, { ref, plan, vmid, templateNode: 'pve1' });
      await eventually(() => rig.simulator.cluster.vms.has(vmid));
      assert.match((await heldBy(rig)) ?? '', /being made/);
      hurry(rig);
      await rig.finish(upid);
      assert.equal(await heldBy(rig), null);
    }, longClones));

  it('is held by what is left nameless at a VMID of its UID, and by no other placeholder', () =>
    withSteps(async (rig) => {
      addSeed(rig, lost);
      rig.place({ vmid: 301, config: { name: null, description: null, lock: 'clone' } });
      assert.equal(await heldBy(rig), null);
      const knownVmids = { [lostUid.slice(0, 8)]: [301] };
      assert.match((await heldBy(rig, { knownVmids })) ?? '', /VM 301 on pve1 is not finished/);
    }));
});
