import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { probe, rowsThatMatter, settle, type CandidateVm } from '../../activities/vm/allocation.ts';
import type { Claim } from '../../activities/vm/ownership.ts';
import { ProviderError } from '../../activities/providerError.ts';
import type { Reason } from '../../workflows/contract/errors.ts';
import { aPlan, aRef, testInstallation } from '../support/aPlan.ts';

const claim: Claim = {
  vmName: aPlan().vmName,
  uid: aRef().uid,
  installationId: testInstallation.id,
  also: [],
  vmidRange: { min: 100_000, max: 100_099 },
};

function aVm(fields: Partial<CandidateVm> = {}): CandidateVm {
  return {
    vmid: 100_007,
    node: 'pve1',
    recorded: false,
    verdict: { kind: 'ours' },
    lock: null,
    holder: { kind: 'nobody' },
    power: 'stopped',
    complete: true,
    seedAttached: false,
    ...fields,
  };
}

function refusal(vms: CandidateVm[]): ProviderError {
  let thrown: unknown = null;
  try {
    settle(vms, claim);
  } catch (error) {
    thrown = error;
  }
  assert.ok(thrown instanceof ProviderError, 'settle refuses');
  return thrown;
}

const task = { kind: 'task', upid: 'UPID:pve1:1:2:3:qmclone:9001:op@pve!tok:' } as const;
const placeholder = { verdict: { kind: 'nameless' }, lock: 'clone', power: 'unknown' } as const;

describe('allocation', () => {
  const settled: [title: string, vms: CandidateVm[], kind: string | null][] = [
    ['nothing of ours', [], null],
    ["another's VM at a candidate", [aVm({ verdict: { kind: 'foreign' } })], null],
    ["another's VM with a lock", [aVm({ verdict: { kind: 'foreign' }, lock: 'backup' })], null],
    ['our stopped VM', [aVm()], 'ours'],
    ['our hibernated VM', [aVm({ lock: 'suspended', power: 'hibernated' })], 'ours'],
    ['our running VM in a backup', [aVm({ lock: 'backup', power: 'running' })], 'ours'],
    ['our stopped VM without all its disks', [aVm({ complete: false })], 'incomplete'],
    ['our running VM without all its disks', [aVm({ complete: false, power: 'running' })], 'ours'],
    [
      'a recorded clone under way',
      [aVm({ ...placeholder, recorded: true, holder: task })],
      'cloning',
    ],
    ['our named clone under way, not recorded', [aVm({ lock: 'clone', holder: task })], 'cloning'],
    ['a recorded clone whose task is dead', [aVm({ ...placeholder, recorded: true })], 'stuck'],
    ['our VM whose suspend died', [aVm({ lock: 'suspending' })], 'stuck'],
    ["a dead clone we did not record: nobody's", [aVm(placeholder)], null],
    [
      'a bare placeholder without a lock',
      [aVm({ ...placeholder, lock: null, recorded: true })],
      null,
    ],
    [
      'our VM beside a silent node',
      [aVm(), aVm({ vmid: 100_008, verdict: { kind: 'unreadable' } })],
      'ours',
    ],
  ];
  for (const [title, vms, kind] of settled) {
    it(`${title}: ${kind ?? 'a vacant VMID may be taken'}`, () => {
      assert.equal(settle(vms, claim)?.kind ?? null, kind);
    });
  }

  const refused: [title: string, vms: CandidateVm[], reason: Reason, text: RegExp][] = [
    [
      'our name without a mark',
      [aVm({ verdict: { kind: 'unmarked' } })],
      'OwnershipConflict',
      /VM 100007 .* carries no mark; this Proxy has UID 11111111-/,
    ],
    [
      'our name with another UID',
      [aVm({ verdict: { kind: 'otherUid', uid: '2222' } })],
      'OwnershipConflict',
      /VM 100007 .*"2222"; this Proxy has UID 11111111-/,
    ],
    ['two VMs of our name', [aVm(), aVm({ vmid: 100_008 })], 'DuplicateVm', /100007.*100008/],
    [
      'two of our name, one recorded and stopped',
      [aVm({ power: 'running' }), aVm({ vmid: 100_008, recorded: true })],
      'DuplicateVm',
      /100007.*100008/,
    ],
    [
      'our VM and an unmarked one of its name, though recorded',
      [
        aVm({ recorded: true }),
        aVm({ vmid: 100_008, recorded: true, verdict: { kind: 'unmarked' } }),
      ],
      'DuplicateVm',
      /100007.*100008/,
    ],
    [
      'two running VMs of our name, both recorded',
      [
        aVm({ recorded: true, power: 'running' }),
        aVm({ vmid: 100_008, recorded: true, power: 'running' }),
      ],
      'DuplicateVm',
      /100007.*100008/,
    ],
    [
      "another installation's VM beside ours",
      [aVm(), aVm({ vmid: 100_008, verdict: { kind: 'otherInstallation', installation: 'x' } })],
      'InstallationMismatch',
      /VM 100008 .*"x"/,
    ],
    [
      'a backup of our stopped VM',
      [aVm({ lock: 'backup' })],
      'WaitingForLock',
      /locked \(backup\)/,
    ],
    [
      'a clone at our VMID that we did not record',
      [aVm({ ...placeholder, holder: task })],
      'WaitingForLock',
      /locked \(clone\) by task UPID:pve1/,
    ],
    [
      'a recorded clone nobody can tell about',
      [aVm({ ...placeholder, recorded: true, holder: { kind: 'undecided' } })],
      'WaitingForLock',
      /locked \(clone\)/,
    ],
    [
      'our VM that is not recorded, perhaps a restored backup of one on a silent node',
      [aVm(), aVm({ vmid: 100_008, recorded: true, verdict: { kind: 'unreadable' } })],
      'Unreachable',
      /VM 100008 .*pve1/,
    ],
    [
      'a VM that may be ours on a silent node',
      [aVm({ verdict: { kind: 'unreadable' } })],
      'Unreachable',
      /VM 100007 .*pve1/,
    ],
  ];
  for (const [title, vms, reason, text] of refused) {
    it(`${title}: ${reason}`, () => {
      const error = refusal(vms);
      assert.equal(error.facts.reason, reason);
      assert.match(error.message, text);
    });
  }

  it('goes on with our recorded VM whatever stands on a silent node', () => {
    const silent = aVm({ vmid: 100_001, verdict: { kind: 'unreadable' } });
    assert.equal(settle([silent, aVm({ recorded: true })], claim)?.kind, 'ours');
  });

  it('waits for a recorded clone before it is stopped by a silent node', () => {
    const silent = aVm({ vmid: 100_001, verdict: { kind: 'unreadable' } });
    const cloning = aVm({ ...placeholder, recorded: true, holder: task });
    assert.equal(settle([silent, cloning], claim)?.kind, 'cloning');
  });

  it('gives a dead clone with the exact line that removes it', () => {
    const result = settle([aVm({ ...placeholder, recorded: true })], claim);
    assert.deepEqual(result, {
      kind: 'stuck',
      vmid: 100_007,
      node: 'pve1',
      lock: 'clone',
      remedy: 'on pve1: qm unlock 100007 && qm destroy 100007 --purge',
    });
  });
});

describe('the rows whose config is read', () => {
  const wish = { uidPrefix: '11111111', recorded: [500], probed: [100_007, 100_008], avoid: [501] };
  const rows: [title: string, row: Parameters<typeof rowsThatMatter>[0][number], read: boolean][] =
    [
      ['a recorded VMID, whatever its row says', { vmid: 500, type: 'qemu', name: 'web' }, true],
      ['a name with our digits', { vmid: 7, type: 'qemu', name: 'proxy-x-abc-11111111-f' }, true],
      ['a candidate without a name', { vmid: 100_007, type: 'qemu' }, true],
      ['a candidate called VM n', { vmid: 100_008, type: 'qemu', name: 'VM 100008' }, true],
      ['a locked candidate', { vmid: 100_008, type: 'qemu', name: 'web', lock: 'backup' }, true],
      ['a candidate with another name', { vmid: 100_007, type: 'qemu', name: 'web' }, false],
      ['a nameless VM elsewhere', { vmid: 100_009, type: 'qemu' }, false],
      ['a container', { vmid: 100_007, type: 'lxc' }, false],
      ['a VMID given up', { vmid: 501, type: 'qemu', name: 'proxy-x-abc-11111111-f' }, false],
    ];
  for (const [title, row, read] of rows) {
    it(`${title}: ${read ? 'read' : 'not read'}`, () => {
      assert.equal(rowsThatMatter([row], wish).length, read ? 1 : 0);
    });
  }
});

describe('probing', () => {
  it('passes what is taken, and names what it passed', () => {
    const result = probe([5, 6, 7, 8], [new Set([5]), new Set([6])]);
    assert.deepEqual(result, { vacant: 7, probed: [5, 6] });
  });

  it('ends when every candidate is taken', () => {
    assert.deepEqual(probe([5, 6], [new Set([5, 6])]), { vacant: null, probed: [5, 6] });
  });
});
