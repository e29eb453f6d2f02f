import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatMark, installationHex, type Mark } from '../../activities/vm/identity.ts';
import { keptBecause, ownedBy, ownerOf, type SeenVm } from '../../activities/vm/orphan.ts';
import { aPlan, aRef, testInstallation } from '../support/aPlan.ts';

const { vmName } = aPlan();
const mark: Mark = {
  managed: 'true',
  uid: aRef().uid,
  createdAt: '2026-11-29T14:50:00Z',
  installation: testInstallation.id,
  proxy: 'egress/p1',
  spec: 'abcdef'.padEnd(64, '0'),
  deletionPolicy: 'Delete',
};

function seen(
  changes: { mark?: Partial<Mark>; values?: Record<string, string>; type?: 'qemu' | 'lxc' } = {},
): SeenVm {
  const description = formatMark({ ...mark, ...changes.mark });
  const values = { name: vmName, description, ...changes.values };
  return { vmid: 100_001, node: 'pve1', type: changes.type ?? 'qemu', values };
}

describe('whose VM may be collected', () => {
  it('is that of a VM whose name and mark agree on installation and UID', () => {
    assert.equal(ownedBy(testInstallation, seen())?.name, vmName);
  });

  const others: [string, Parameters<typeof seen>[0]][] = [
    ['a container', { type: 'lxc' }],
    ['a template', { values: { template: '1' } }],
    ['a VM with a name of its own', { values: { name: 'web-1' } }],
    ['a VM named like a proxy by hand', { values: { name: 'proxy-web-1' } }],
    ['a VM of our name without a mark', { values: { description: 'mine' } }],
    ['a VM whose mark names no UID', { mark: { uid: '' } }],
    ['a clone of our VM under the name of another Proxy', { mark: { uid: '22222222-2222-4222-8222-222222222222' } }], // prettier-ignore
    ['a VM whose mark names no installation', { mark: { installation: null } }],
    ['a VM of another installation', { mark: { installation: 'elsewhere' } }],
  ];
  for (const [what, changes] of others) {
    it(`is not that of ${what}`, () => {
      assert.equal(ownedBy(testInstallation, seen(changes)), null);
    });
  }

  it('is not that of an installation whose VMs would be adopted: it may be alive elsewhere', () => {
    const collector = { ...testInstallation, also: ['elsewhere'] };
    const name = vmName.replace(testInstallation.hex, installationHex('elsewhere'));
    const theirs = seen({ mark: { installation: 'elsewhere' }, values: { name } });
    assert.equal(ownedBy(collector, theirs), null);
  });

  it('is that of a VM adopted from another installation: it has its name and our mark', () => {
    const collector = { ...testInstallation, also: ['elsewhere'] };
    const name = vmName.replace(testInstallation.hex, installationHex('elsewhere'));
    assert.equal(ownedBy(collector, seen({ values: { name } }))?.name, name);
    assert.equal(ownedBy(testInstallation, seen({ values: { name } })), null);
  });
});

describe('an orphan', () => {
  function kept(changes: Parameters<typeof seen>[0] = {}): string | null {
    const vm = seen(changes);
    const owned = ownedBy(testInstallation, vm);
    assert.ok(owned);
    return keptBecause(vm, owned);
  }

  it('may go when nothing speaks for it, also hibernated', () => {
    assert.equal(kept(), null);
    assert.equal(kept({ values: { lock: 'suspended' } }), null);
  });

  it('is kept when its mark says that it was retained, or that it is to be', () => {
    assert.match(kept({ mark: { managed: 'retained' } }) ?? '', /retained/);
    assert.match(kept({ mark: { deletionPolicy: 'Retain' } }) ?? '', /Retain/);
  });

  it('is kept while it is protected, with the line that ends the protection', () => {
    assert.match(kept({ values: { protection: '1' } }) ?? '', /qm set 100001 --protection 0/);
  });

  it('is kept while it is locked; a lock that no token can clear has its remedy', () => {
    assert.equal(kept({ values: { lock: 'backup' } }), 'it is locked (backup)');
    assert.match(kept({ values: { lock: 'clone' } }) ?? '', /on pve1: qm unlock 100001/);
  });

  it('has the owner that its mark names', () => {
    assert.deepEqual(ownerOf(mark), aRef());
    for (const proxy of [null, '', 'p1', 'egress/', 'a/b/c', 'egress/../x']) {
      assert.equal(ownerOf({ ...mark, proxy }), null);
    }
  });
});
