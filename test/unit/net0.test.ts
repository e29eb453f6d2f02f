import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { netMac, rewriteNet0 } from '../../activities/vm/hardware.ts';

describe('net0', () => {
  const mac = 'BC:24:11:87:7D:7C';

  const spellings = [
    `virtio=${mac},bridge=vmbr0`,
    `bridge=vmbr0,virtio=${mac}`,
    `virtio,bridge=vmbr0,macaddr=${mac}`,
    `model=virtio,macaddr=${mac.toLowerCase()}`,
    `firewall=1,e1000=${mac},link_down=1`,
  ];
  for (const net0 of spellings) {
    it(`shows its MAC when written ${net0}`, () => {
      assert.equal(netMac(net0), mac);
    });
  }

  it('has no MAC before Proxmox gave it one', () => {
    assert.equal(netMac('virtio,bridge=vmbr0'), null);
    assert.equal(netMac(''), null);
  });

  const rewrites: [string, string, string | null, number | null, string | null][] = [
    ['stays when nothing is set', `virtio=${mac},bridge=vmbr0`, null, null, null],
    ['stays when bridge and VLAN are right', `bridge=vmbr1,virtio=${mac},tag=4`, 'vmbr1', 4, null],
    ['gets a tag', `virtio=${mac},bridge=vmbr0`, null, 4, `virtio=${mac},bridge=vmbr0,tag=4`],
    [
      'gets another tag in its place',
      `virtio=${mac},tag=40,bridge=vmbr0,firewall=1`,
      null,
      4,
      `virtio=${mac},tag=4,bridge=vmbr0,firewall=1`,
    ],
    [
      'gets another bridge in its place',
      `firewall=1,bridge=vmbr0,mtu=1,virtio=${mac},queues=4`,
      'vmbr7',
      null,
      `firewall=1,bridge=vmbr7,mtu=1,virtio=${mac},queues=4`,
    ],
    [
      'gets both appended',
      `model=e1000,macaddr=${mac}`,
      'vmbr1',
      4094,
      `model=e1000,macaddr=${mac},bridge=vmbr1,tag=4094`,
    ],
    [
      'changes the tag alone when the bridge is right',
      `virtio=${mac},bridge=vmbr0,trunks=2;3`,
      'vmbr0',
      4,
      `virtio=${mac},bridge=vmbr0,trunks=2;3,tag=4`,
    ],
  ];
  for (const [title, net0, bridge, vlanTag, expected] of rewrites) {
    it(title, () => {
      assert.equal(rewriteNet0(net0, { bridge, vlanTag }), expected);
    });
  }

  const option = fc.constantFrom('firewall=1', 'link_down=0', 'mtu=1', 'queues=4', 'rate=12.5');
  const model = fc.constantFrom(`virtio=${mac}`, `model=e1000,macaddr=${mac}`, 'vmxnet3');
  const placed = fc.constantFrom('bridge=vmbr0', 'bridge=vmbr9', 'tag=4', 'tag=100');
  const anyNet0 = fc
    .tuple(
      model,
      fc.uniqueArray(option),
      fc.uniqueArray(placed, { selector: (text) => text.slice(0, 3) }),
    )
    .chain(([first, ...more]) => {
      const parts = [first, ...more.flat()];
      return fc.shuffledSubarray(parts, { minLength: parts.length }).map((all) => all.join(','));
    });

  it('is right after one rewrite, with everything else kept, for every spelling', () => {
    const wish = fc.record({
      bridge: fc.constantFrom('vmbr0', 'vmbr9', null),
      vlanTag: fc.constantFrom(4, 100, null),
    });
    const rest = (net0: string) => net0.split(',').filter((part) => !/^(bridge|tag)=/.test(part));
    fc.assert(
      fc.property(anyNet0, wish, (net0, wanted) => {
        const written = rewriteNet0(net0, wanted) ?? net0;
        assert.equal(rewriteNet0(written, wanted), null);
        assert.deepEqual(rest(written), rest(net0));
        const parts = written.split(',');
        if (wanted.bridge !== null) assert.ok(parts.includes(`bridge=${wanted.bridge}`));
        if (wanted.vlanTag !== null) assert.ok(parts.includes(`tag=${wanted.vlanTag}`));
      }),
    );
  });
});
