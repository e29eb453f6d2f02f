import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { installationHex, vmNameFor } from '../../activities/vm/identity.ts';
import {
  ownership,
  type Claim,
  type Ownership,
  type SeenIdentity,
} from '../../activities/vm/ownership.ts';
import { aRef, testInstallation } from '../support/aPlan.ts';

const { uid } = aRef();
const otherUid = '22222222-2222-4222-8222-222222222222';
const otherInstallation = 'another-cluster';
const specHash = 'abcdef'.padEnd(64, '0');

function nameOf(fields: { uid?: string; installation?: string; specHash?: string } = {}): string {
  return vmNameFor({
    proxyName: 'p1',
    uid: fields.uid ?? uid,
    installationHex: installationHex(fields.installation ?? testInstallation.id),
    specHash: fields.specHash ?? specHash,
  });
}

const claim: Claim = {
  vmName: nameOf(),
  uid,
  installationId: testInstallation.id,
  also: [],
  vmidRange: { min: 100_000, max: 100_099 },
};

function seen(fields: Partial<SeenIdentity> = {}): SeenIdentity {
  return {
    vmid: 100_007,
    type: 'qemu',
    template: false,
    name: claim.vmName,
    mark: { uid, installation: testInstallation.id },
    ...fields,
  };
}

const otherMark = { uid, installation: otherInstallation };

const cases: [title: string, vm: SeenIdentity, verdict: Ownership, claim?: Claim][] = [
  ['our name and our mark', seen(), { kind: 'ours' }],
  [
    'our name and a mark of before installations were written',
    seen({ mark: { uid, installation: null } }),
    { kind: 'ours' },
  ],
  [
    'our name and a mark whose UID is written in capitals',
    seen({ mark: { uid: uid.toUpperCase(), installation: testInstallation.id } }),
    { kind: 'ours' },
  ],
  [
    'our name, an empty UID, in the range',
    seen({ mark: { uid: '', installation: null } }),
    { kind: 'ours' },
  ],
  [
    'our name, an empty UID, outside the range',
    seen({ vmid: 300, mark: { uid: '', installation: null } }),
    { kind: 'otherUid', uid: '' },
  ],
  ['our name without a mark', seen({ mark: null }), { kind: 'unmarked' }],
  [
    'our name with the mark of another UID',
    seen({ mark: { uid: otherUid, installation: testInstallation.id } }),
    { kind: 'otherUid', uid: otherUid },
  ],
  [
    'our name with the mark of another installation',
    seen({ mark: otherMark }),
    { kind: 'otherInstallation', installation: otherInstallation },
  ],
  ['no name', seen({ name: null, mark: null }), { kind: 'nameless' }],
  ['another name without a mark', seen({ name: 'web-1', mark: null }), { kind: 'foreign' }],
  [
    'another name with our mark, as a clone or restore by hand has',
    seen({ name: 'web-1' }),
    { kind: 'foreign' },
  ],
  [
    'the name of another Proxy with our mark',
    seen({ name: nameOf({ uid: otherUid }) }),
    { kind: 'foreign' },
  ],
  [
    'a VM of this Proxy for another spec',
    seen({ name: nameOf({ specHash: '123456'.padEnd(64, '0') }) }),
    { kind: 'foreign' },
  ],
  [
    'a VM of this Proxy made by another installation',
    seen({ name: nameOf({ installation: otherInstallation }), mark: otherMark }),
    { kind: 'otherInstallation', installation: otherInstallation },
  ],
  [
    "another installation's name whose mark does not agree with it",
    seen({ name: nameOf({ installation: 'a-third' }), mark: otherMark }),
    { kind: 'foreign' },
  ],
  [
    'a VM of another Proxy in another installation whose UID begins alike',
    seen({
      name: nameOf({ installation: otherInstallation }),
      mark: { uid: `${uid.slice(0, 8)}${otherUid.slice(8)}`, installation: otherInstallation },
    }),
    { kind: 'foreign' },
  ],
  [
    'a VM of an installation we take over',
    seen({ name: nameOf({ installation: otherInstallation }), mark: otherMark }),
    { kind: 'ours' },
    { ...claim, also: [otherInstallation] },
  ],
  [
    'a VM of an installation we take over, for another spec',
    seen({
      name: nameOf({ installation: otherInstallation, specHash: '123456'.padEnd(64, '0') }),
      mark: otherMark,
    }),
    { kind: 'foreign' },
    { ...claim, also: [otherInstallation] },
  ],
  [
    'a VM we took over, which has its old name and our mark',
    seen({ name: nameOf({ installation: otherInstallation }) }),
    { kind: 'ours' },
    { ...claim, also: [otherInstallation] },
  ],
  [
    'a VM we took over, for another spec',
    seen({ name: nameOf({ installation: otherInstallation, specHash: '123456'.padEnd(64, '0') }) }),
    { kind: 'foreign' },
    { ...claim, also: [otherInstallation] },
  ],
  [
    'a VM we took over, and are not told so any more',
    seen({ name: nameOf({ installation: otherInstallation }) }),
    {
      kind: 'otherInstallation',
      installation: `<the one whose SHA-256 begins with ${installationHex(otherInstallation)}>`,
    },
  ],
  ['a template with our name and mark', seen({ template: true }), { kind: 'foreign' }],
  ['a container with our name', seen({ type: 'lxc' }), { kind: 'foreign' }],
];

describe('ownership', () => {
  for (const [title, vm, verdict, asked = claim] of cases) {
    it(`${title}: ${verdict.kind}`, () => {
      assert.deepEqual(ownership(vm, asked), verdict);
    });
  }
});
