import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listManagedVms } from '../../activities/listManagedVms.ts';
import { installationHex } from '../../activities/vm/identity.ts';
import { aRef } from '../support/aPlan.ts';
import { census, lostUid, nameOf, placeOrphan } from '../support/orphanRig.ts';
import { anAttempt } from '../support/proxmoxClient.ts';
import { writes } from '../support/removals.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { expectReason, withSteps } from '../support/stepHarness.ts';

/** Of pino. */
const debugLevel = 20;
const everyVm = { ref: null, provider: 'pve' } as const;

describe('listManagedVms without a Proxy', () => {
  it('finds the VMs of ours whose UID no Proxy has, on every node, and counts them with those of Proxies', () =>
    withSteps(async (rig) => {
      rig.place();
      placeOrphan(rig, { node: 'pve2' });
      const { orphans, managed, alarm, listVersion } = await census(rig);
      const owner = { ...aRef(), uid: lostUid };
      assert.deepEqual(orphans, [
        { vmid: 300, node: 'pve2', name: nameOf(lostUid), owner, kept: null },
      ]);
      assert.equal(managed, 2);
      assert.equal(alarm, null);
      assert.equal(listVersion, '1000');
    }));

  it('finds nothing of a Proxy that exists, whatever its spec and whether it is being deleted', () =>
    withSteps(async (rig) => {
      rig.place({ config: { name: nameOf(rig.ref.uid, { spec: '999999' }) } });
      rig.records.markDeleting(rig.ref);
      assert.deepEqual((await census(rig)).orphans, []);
    }));

  it('asks nothing but to read, and reads no config of a VM that has a Proxy or another name', () =>
    withSteps(async (rig) => {
      rig.place();
      placeOrphan(rig);
      rig.place({ vmid: 301, config: { name: 'web-1' } });
      rig.place({ vmid: 302, config: { name: 'proxy-by-hand' } });
      const theirs = nameOf(lostUid, { hex: installationHex('elsewhere') });
      rig.place({ vmid: 303, installation: 'elsewhere', uid: lostUid, config: { name: theirs } });
      assert.deepEqual(
        (await census(rig)).orphans.map(({ vmid }) => vmid),
        [300],
      );
      assert.deepEqual(writes(rig), []);
      const read = rig.sent('GET', /\/qemu\/\d+\/config$/).map(({ path }) => path);
      assert.deepEqual(read, ['/nodes/pve1/qemu/300/config']);
    }));

  it('believes no name: the mark in the config decides', () =>
    withSteps(
      async (rig) => {
        placeOrphan(rig, { config: { description: 'made by hand' } });
        placeOrphan(rig, { vmid: 301, installation: 'elsewhere' });
        placeOrphan(rig, { vmid: 302, config: { template: '1' } });
        placeOrphan(rig, { vmid: 303 });
        rig.simulator.cluster.vms.get(303)?.config.set('name', 'web-1');
        assert.deepEqual((await census(rig)).orphans, []);
        assert.equal(rig.sent('GET', /\/303\/config$/).length, 1, 'the listing shows the old name');
      },
      // The statistics, with the name in the listing, are renewed every ten seconds.
      { timeScale: 1 },
    ));

  it('says of a VM that is to stay why', () =>
    withSteps(async (rig) => {
      placeOrphan(rig, { config: { protection: '1' } });
      const { orphans } = await census(rig);
      assert.match(orphans[0]?.kept ?? '', /protected/);
    }));

  it('keeps a backup that was restored beside its original, and the original: nobody can tell which is ours', () =>
    withSteps(async (rig) => {
      placeOrphan(rig);
      placeOrphan(rig, { vmid: 301, node: 'pve2' });
      placeOrphan(rig, { vmid: 302, config: { name: nameOf(lostUid, { spec: '777777' }) } });
      const { orphans } = await census(rig);
      assert.deepEqual(
        orphans.map(({ vmid, kept }) => [vmid, kept]),
        [
          [300, 'VM 301 on pve2 has the same name; remove or rename all but one'],
          [301, 'VM 300 on pve1 has the same name; remove or rename all but one'],
          [302, null],
        ],
      );
    }));

  it('keeps an orphan beside a VM that has its name only: no step would remove it', () =>
    withSteps(async (rig) => {
      placeOrphan(rig);
      const unmarked = { name: nameOf(lostUid), description: 'made by hand' };
      rig.place({ vmid: 301, node: 'pve2', config: unmarked });
      const { orphans } = await census(rig);
      assert.deepEqual(
        orphans.map(({ vmid, kept }) => [vmid, kept]),
        [[300, 'VM 301 on pve2 has the same name; remove or rename all but one']],
      );
    }));

  it('keeps an orphan while a VM without a name stands on a silent node: that may be its original', () =>
    withSteps(async (rig) => {
      placeOrphan(rig);
      rig.place({ vmid: 301, node: 'pve2', config: { name: 'web-1' } });
      rig.simulator.setNode('pve2', { state: 'dead' });
      assert.equal((await census(rig)).orphans[0]?.kept, null, 'its row tells the name still');
      // As five minutes after a node went silent (pve/cluster.md 20).
      rig.simulator.cluster.stats.delete(301);
      assert.equal(
        (await census(rig)).orphans[0]?.kept,
        'VM 301 on pve2 cannot be read, and may have the same name; is node pve2 there?',
      );
    }));

  it('keeps an orphan while the config of a VM without a name cannot be read, for whatever reason', () =>
    withSteps(
      async (rig) => {
        placeOrphan(rig);
        rig.place({ vmid: 301, node: 'pve2', config: { name: 'web-1' } });
        rig.simulator.cluster.stats.delete(301);
        const action = { kind: 'status', status: 500, reason: 'unable to read', when: 'before' } as const; // prettier-ignore
        rig.simulator.faults.push({ method: 'GET', path: '/qemu/301/config$', times: 9, action });
        assert.match((await census(rig)).orphans[0]?.kept ?? '', /^VM 301 on pve2 cannot be read/);
      },
      { timeScale: 1 },
    ));

  it('keeps an orphan beside a VM of its name that is too young for its row to tell', () =>
    withSteps(
      async (rig) => {
        placeOrphan(rig);
        placeOrphan(rig, { vmid: 301, node: 'pve2' });
        rig.simulator.cluster.stats.delete(301);
        assert.match((await census(rig)).orphans[0]?.kept ?? '', /^VM 301 on pve2 has the same/);
      },
      // The statistics, with the name in the listing, are renewed every ten seconds.
      { timeScale: 1 },
    ));

  it('counts among ours neither what is to stay, nor what cannot be read, nor what is not ours', () =>
    withSteps(async (rig) => {
      rig.place();
      const named = (digits: string): { name: string } => ({
        name: nameOf(lostUid, { spec: digits }),
      });
      placeOrphan(rig, { config: { protection: '1' } });
      placeOrphan(rig, { vmid: 301, node: 'pve2', config: named('777777') });
      placeOrphan(rig, { vmid: 302, config: { ...named('888888'), description: 'made by hand' } });
      placeOrphan(rig, { vmid: 303, config: named('999999') });
      rig.simulator.setNode('pve2', { state: 'dead' });
      const { orphans, managed } = await census(rig);
      assert.deepEqual(orphans.map(({ vmid }) => vmid), [300, 303]); // prettier-ignore
      assert.equal(managed, 2, 'the VM of the Proxy, and the orphan that may go');
    }));

  it('keeps a VM whose mark names no Proxy', () =>
    withSteps(async (rig) => {
      placeOrphan(rig);
      const { config } = rig.simulator.cluster.vms.get(300) ?? {};
      const mark = config?.get('description') ?? '';
      config?.set('description', mark.replace(/proxy-operator-proxy=.*\n/, ''));
      assert.equal((await census(rig)).orphans[0]?.kept, 'its mark names no Proxy');
    }));

  it('leaves out what is on a node that does not answer, and nothing else', () =>
    withSteps(async (rig) => {
      placeOrphan(rig, { node: 'pve2' });
      placeOrphan(rig, { vmid: 301, config: { name: nameOf(lostUid, { spec: '777777' }) } });
      rig.simulator.setNode('pve2', { state: 'dead' });
      const { orphans, managed } = await census(rig);
      assert.deepEqual(
        orphans.map(({ vmid }) => vmid),
        [301],
      );
      assert.equal(managed, 1);
      const [skipped] = rig.lines.filter(({ msg }) => msg === 'skipping unreadable proxmox vm');
      const { vmid, node, name, reason, level } = skipped ?? {};
      const told = [vmid, node, name, reason, level];
      assert.deepEqual(told, [300, 'pve2', nameOf(lostUid), 'Unreachable', debugLevel]);
    }));

  it('counts in its line what was listed, looked at, managed and skipped, and has one for each VM of ours', () =>
    withSteps(async (rig) => {
      rig.place();
      placeOrphan(rig);
      placeOrphan(rig, { vmid: 301, node: 'pve2', config: { name: nameOf(lostUid, { spec: '777777' }) } }); // prettier-ignore
      rig.place({ vmid: 302, config: { name: 'web-1', description: null } });
      rig.simulator.setNode('pve2', { state: 'dead' });
      const listed = (await rig.deps.providers.api('pve', anAttempt()).listVms()).length;
      await census(rig);
      const [line] = rig.lines.filter(({ msg }) => msg === 'proxmox vms listed');
      const { level, vms, candidates, managed, skipped, orphans } = line ?? {};
      const counts = { level, vms, candidates, managed, skipped, orphans };
      assert.deepEqual(counts, { level: debugLevel, vms: listed, candidates: 2, managed: 2, skipped: 1, orphans: 1 }); // prettier-ignore
      const each = rig.lines.filter(({ msg }) => msg === 'proxmox listed instance');
      assert.deepEqual(
        each
          .map(({ vmid, node, name }) => `${String(vmid)} ${String(node)} ${String(name)}`)
          .toSorted(),
        [
          `${rig.vmid} pve1 ${rig.plan.vmName}`,
          `300 pve1 ${nameOf(lostUid)}`,
          `301 pve2 ${nameOf(lostUid, { spec: '777777' })}`,
        ].toSorted(),
      );
    }));

  it('concludes nothing without the right to see VMs, nor without Kubernetes', () =>
    withSteps(
      async (rig) => {
        expectReason(await rig.refusal(listManagedVms, everyVm), 'ListingIncomplete');
      },
      { fixture: stepFixture({ acls: [] }) },
    ));

  it('lists VMs before Proxies: what is made meanwhile is nobody’s orphan', () =>
    withSteps(async (rig) => {
      placeOrphan(rig);
      const { survey } = rig.records;
      rig.records.survey = () => {
        assert.equal(rig.sent('GET', /^\/cluster\/resources$/).length, 1);
        return survey();
      };
      assert.equal((await census(rig)).orphans.length, 1);
    }));

  it('tells the alarm of the observation, and what the config says about collecting', () =>
    withSteps(async (rig) => {
      const alarm = {
        id: 'absent-1',
        since: '2026-11-29T19:00:00Z',
        message: 'all gone',
        vmids: [],
      };
      await rig.deps.alarms.write('pve', alarm);
      rig.configure({ gc: { mode: 'report', graceMinutes: 5 }, confirmAbsence: 'absent-0' });
      const taken = await census(rig);
      assert.equal(taken.alarm, 'absent-1');
      rig.configure({ confirmAbsence: 'absent-1' });
      assert.equal((await census(rig)).alarm, null, 'a person has confirmed it');
      assert.equal(taken.shownAlarm, null);
      rig.deps.alarms.readCollection = async (provider) => `rollback-of-${provider}`;
      assert.equal((await census(rig)).shownAlarm, 'rollback-of-pve');
      const { mode, graceMs, confirmAbsence } = taken.settings;
      assert.deepEqual({ mode, graceMs, confirmAbsence }, { mode: 'report', graceMs: 300_000, confirmAbsence: 'absent-0' }); // prettier-ignore
    }));
});
