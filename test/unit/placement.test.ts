import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { place } from '../../activities/vm/placement.ts';
import type { Placement } from '../../workflows/contract/proxy.ts';
import { aProviderConfig } from '../support/aPlan.ts';

const wanted: Placement = {
  region: null,
  zone: null,
  machineType: 'small',
  image: 'debian-13',
};
const twoNodes = {
  nodes: ['pve1', 'pve2'],
  templates: { 'debian-13': { vmid: 9001, vmids: { pve2: 9003 } } },
  machineTypes: { small: { cores: 2, memoryMiB: 1024, diskGiB: 20 } },
};

function problemsOf(placement: Placement, proxmox: Record<string, unknown> = {}): string[] {
  const result = place(placement, aProviderConfig(proxmox));
  assert.equal(result.kind, 'invalid');
  return result.kind === 'invalid' ? result.problems : [];
}

describe('a placement', () => {
  it('takes the only node when no zone is given', () => {
    assert.deepEqual(place(wanted, aProviderConfig()), {
      kind: 'placed',
      placed: {
        node: 'pve1',
        machineType: 'small',
        image: 'debian-13',
        templateVmid: 9001,
        cores: 1,
        memoryMiB: 512,
        diskGiB: null,
      },
    });
  });

  it("takes the node's own copy of the template where there is one", () => {
    const at = (zone: string): number | null => {
      const result = place({ ...wanted, zone }, aProviderConfig(twoNodes));
      return result.kind === 'placed' ? result.placed.templateVmid : null;
    };
    assert.deepEqual([at('pve1'), at('pve2')], [9001, 9003]);
  });

  it('ignores the region', () => {
    const result = place({ ...wanted, region: 'anywhere' }, aProviderConfig());
    assert.equal(result.kind, 'placed');
  });

  const refusals: [Placement, Record<string, unknown>, string[]][] = [
    [{ ...wanted, zone: 'x' }, {}, ['placement.zone "x" is not in proxmox.nodes']],
    [wanted, twoNodes, ['placement.zone is required when proxmox.nodes lists more than one node']],
    [
      { ...wanted, machineType: 'x' },
      {},
      ['placement.machineType "x" is not in proxmox.machineTypes'],
    ],
    [{ ...wanted, image: 'x' }, {}, ['placement.image "x" is not in proxmox.templates']],
    [
      { ...wanted, image: 'constructor' },
      {},
      ['placement.image "constructor" is not in proxmox.templates'],
    ],
    [
      { ...wanted, zone: 'x', image: 'y' },
      {},
      [
        'placement.zone "x" is not in proxmox.nodes',
        'placement.image "y" is not in proxmox.templates',
      ],
    ],
  ];
  for (const [placement, proxmox, problems] of refusals) {
    it(`is refused: ${problems.join('; ')}`, () => {
      assert.deepEqual(problemsOf(placement, proxmox), problems);
    });
  }
});
