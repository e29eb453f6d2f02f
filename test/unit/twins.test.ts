import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ManagedVm } from '../../workflows/contract/removalSteps.ts';
import { sortTwins } from '../../workflows/twins.ts';

function vm(vmid: number, name = 'proxy-p1'): ManagedVm {
  return { vmid, node: 'pve1', name, specHash: 'aaaa' };
}

function sorted(found: ManagedVm[], recorded: number[]): Record<string, number[]> {
  const sets = Object.entries(sortTwins(found, new Set(recorded)));
  return Object.fromEntries(
    sets.map(([kind, vms]: [string, ManagedVm[]]) => [kind, vms.map(({ vmid }) => vmid)]),
  );
}

describe('of the VMs that a deletion finds', () => {
  const rows: [string, ManagedVm[], number[], Record<string, number[]>][] = [
    ['one alone under its name may go, recorded or not', [vm(1), vm(2, 'proxy-p1-old')], [1], { removable: [1, 2], spared: [], undecided: [] }],
    ['a copy beside the one that was recorded is spared', [vm(1), vm(2), vm(3)], [2], { removable: [2], spared: [1, 3], undecided: [] }],
    ['two recorded ones both go', [vm(1), vm(2)], [1, 2], { removable: [1, 2], spared: [], undecided: [] }],
    ['of two that nobody recorded none may go', [vm(1), vm(2), vm(3, 'proxy-p1-old')], [9], { removable: [3], spared: [], undecided: [1, 2] }],
  ]; // prettier-ignore
  for (const [what, found, recorded, expected] of rows) {
    it(what, () => assert.deepEqual(sorted(found, recorded), expected));
  }
});
