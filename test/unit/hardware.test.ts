import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  bootDisk,
  checkTemplate,
  cloudInitDrive,
  configChanges,
  diskKeys,
  ideSeedVolid,
  netMac,
  parseDrive,
  parseSize,
  resizeTarget,
  rewriteNet0,
} from '../../activities/vm/hardware.ts';
import type { ConfigValues, ConfigWish } from '../../activities/vm/hardware.ts';

const GiB = 1024 ** 3;

/** cases.md 19 a: a usual UEFI template. */
const template: ConfigValues = {
  template: '1',
  boot: 'order=scsi0;ide2;net0',
  scsi0: 'local-lvm:base-9001-disk-1,discard=on,iothread=1,size=3584M,ssd=1',
  efidisk0: 'local-lvm:base-9001-disk-0,efitype=4m,pre-enrolled-keys=0,size=528K',
  memory: '2048',
  cores: '2',
  net0: 'virtio=BC:24:11:87:7D:7C,bridge=vmbr0',
};

describe('sizes', () => {
  const sizes: [string, number | null][] = [
    ['528K', 528 * 1024],
    ['2252M', 2252 * 1024 ** 2],
    ['3584M', 3.5 * GiB],
    ['32G', 32 * GiB],
    ['1T', 1024 * GiB],
    ['1.5G', 1.5 * GiB],
    ['67108865', 67_108_865],
    ['0', 0],
    ['', null],
    ['G', null],
    ['12k', null],
    ['12 G', null],
    ['-1G', null],
    ['12GiB', null],
    ['1e3', null],
  ];
  for (const [text, bytes] of sizes) {
    it(`reads ${JSON.stringify(text)} as ${bytes === null ? 'unreadable' : `${bytes} bytes`}`, () => {
      assert.equal(parseSize(text), bytes);
    });
  }
});

describe('a drive', () => {
  const spellings = [
    'local-lvm:vm-101-disk-0,discard=on,size=3G',
    'file=local-lvm:vm-101-disk-0,discard=on,size=3G',
    'discard=on,volume=local-lvm:vm-101-disk-0,size=3G',
    'size=3G,discard=on,local-lvm:vm-101-disk-0',
    'size=3G, file=local-lvm:vm-101-disk-0 ,',
  ];
  for (const text of spellings) {
    it(`is the same however it is spelt: ${text}`, () => {
      assert.deepEqual(parseDrive(text), {
        volume: 'local-lvm:vm-101-disk-0',
        storage: 'local-lvm',
        cdrom: false,
        sizeBytes: 3 * GiB,
      });
    });
  }

  it('keeps the path of a volume on a directory storage', () => {
    const drive = parseDrive('local:9001/base-9001-disk-0.qcow2/103/vm-103-disk-0.qcow2,size=64M');
    assert.equal(drive?.volume, 'local:9001/base-9001-disk-0.qcow2/103/vm-103-disk-0.qcow2');
    assert.equal(drive.storage, 'local');
  });

  it('is a CD-ROM with media=cdrom anywhere, and when it is empty', () => {
    assert.equal(parseDrive('media=cdrom,proxy-seeds:iso/a.iso')?.cdrom, true);
    assert.equal(parseDrive('none,media=cdrom')?.cdrom, true);
    assert.equal(parseDrive('cdrom')?.cdrom, true);
    assert.equal(parseDrive('local:101/vm-101-disk-0.raw,media=disk')?.cdrom, false);
  });

  it('has no storage when it is a device of the host, and no size when none is given', () => {
    assert.deepEqual(parseDrive('/dev/disk/by-id/ata-a:b'), {
      volume: '/dev/disk/by-id/ata-a:b',
      storage: null,
      cdrom: false,
      sizeBytes: null,
    });
  });

  it('is none without a volume', () => {
    assert.equal(parseDrive('media=cdrom'), null);
    assert.equal(parseDrive('file='), null);
    assert.equal(parseDrive(''), null);
  });
});

describe('the disks a clone copies', () => {
  it('are those of the guest, of UEFI and of the TPM, without CD-ROMs and unused ones', () => {
    const values = {
      ...template,
      scsi10: 'local-lvm:base-9001-disk-4,size=1G',
      virtio15: 'local-lvm:base-9001-disk-5,size=1G',
      tpmstate0: 'local-lvm:base-9001-disk-2,size=4M,version=v2.0',
      unused0: 'local-lvm:base-9001-disk-7',
      ide2: 'local:iso/packer2091475118.iso,media=cdrom,size=366K',
      sata0: 'none,media=cdrom',
      scsihw: 'virtio-scsi-pci',
      virtiofs0: 'share',
      scsi31: 'local-lvm:no-such-slot',
    };
    assert.deepEqual(diskKeys(values), ['efidisk0', 'scsi0', 'scsi10', 'tpmstate0', 'virtio15']);
  });

  it('are none while the clone is a placeholder', () => {
    assert.deepEqual(diskKeys({ description: ' qmclone temporary file', lock: 'clone' }), []);
  });
});

describe('the boot disk', () => {
  const base = 'local:9001/base-9001-disk-0.raw';
  const cases: [string, ConfigValues, string | null, number | null][] = [
    ['is the first disk of the order', template, 'scsi0', 3.5 * GiB],
    [
      'is what bootdisk names under a legacy order',
      { boot: 'c', bootdisk: 'virtio0', virtio0: 'nfs:9001/base-9001-disk-0.qcow2,size=2252M' },
      'virtio0',
      2252 * 1024 ** 2,
    ],
    [
      'is what bootdisk names without any order',
      { bootdisk: 'sata0', sata0: `${base},size=1T` },
      'sata0',
      1024 * GiB,
    ],
    ['is none without an order and bootdisk', { sata0: `${base},size=1T` }, null, null],
    ['is none where bootdisk names nothing', { bootdisk: 'scsi1', scsi0: base }, null, null],
    [
      'is none where bootdisk names a CD-ROM',
      { bootdisk: 'ide2', ide2: 'none,media=cdrom', scsi0: base },
      null,
      null,
    ],
    [
      'is not the CD-ROM that stands first',
      { boot: 'order=ide2;scsi0', ide2: 'none,media=cdrom', scsi0: `${base},size=3G` },
      'scsi0',
      3 * GiB,
    ],
    ['may have no size', { boot: 'order=scsi0', scsi0: base }, 'scsi0', null],
    [
      'is none when only the network is in the order',
      { boot: 'order=net0', scsi0: base },
      null,
      null,
    ],
    ['is none when the order is empty', { boot: 'order=', scsi0: base }, null, null],
    [
      'is not an entry whose disk is missing',
      { boot: 'order=scsi0;scsi1', scsi1: `${base},size=2G` },
      'scsi1',
      2 * GiB,
    ],
    [
      'is found in an order separated by commas or blanks',
      { boot: 'order=net0,scsi3 scsi0', scsi3: `${base},size=2G`, scsi0: base },
      'scsi3',
      2 * GiB,
    ],
    [
      'is found behind a legacy part',
      { boot: 'legacy=cdn,order=scsi0', scsi0: `${base},size=2G` },
      'scsi0',
      2 * GiB,
    ],
    [
      'is never an EFI, TPM or unused disk',
      {
        boot: 'order=efidisk0;tpmstate0;unused0;scsi0',
        efidisk0: base,
        tpmstate0: base,
        unused0: base,
        scsi0: `${base},size=2G`,
      },
      'scsi0',
      2 * GiB,
    ],
  ];
  for (const [title, values, key, sizeBytes] of cases) {
    it(title, () => {
      const disk = bootDisk(values);
      assert.equal(disk?.key ?? null, key);
      assert.equal(disk?.sizeBytes ?? null, sizeBytes);
    });
  }

  it('says where its volume is', () => {
    assert.equal(bootDisk(template)?.volume, 'local-lvm:base-9001-disk-1');
    assert.equal(bootDisk(template)?.storage, 'local-lvm');
  });
});

describe('a template', () => {
  const wish = { image: 'x', vmid: 9001, wantsNetChange: true, diskGiB: 20 };
  const said = 'placement.image "x": template VM 9001 ';

  it('that fits has no problem, unknown keys of later releases included', () => {
    const values = { ...template, 'x-new-key': 'a=b', scsihw: 'virtio-scsi-pci' };
    assert.equal(checkTemplate(values, wish), null);
  });

  it('fits with an old ISO on ide2, which the seed will replace', () => {
    const values = { ...template, ide2: 'local:iso/packer2091475118.iso,media=cdrom,size=366K' };
    assert.equal(checkTemplate(values, wish), null);
  });

  const { template: _flag, ...plainVm } = template;
  const { net0: _net0, ...withoutNic } = template;
  const problems: [string, ConfigValues, string][] = [
    ['must be a template', plainVm, 'is not a template'],
    ['must be a template in fact', { ...template, template: '0' }, 'is not a template'],
    [
      'may have no cloud-init drive, wherever it is',
      { ...template, scsi1: 'local-lvm:vm-9001-cloudinit,media=cdrom' },
      'has a Proxmox cloud-init drive on scsi1',
    ],
    [
      'may have no cloud-init drive on a directory storage',
      { ...template, ide0: 'local:9001/vm-9001-cloudinit.qcow2,media=cdrom,size=4M' },
      'has a Proxmox cloud-init drive on ide0',
    ],
    [
      'may have no disk in the slot of the seed',
      { ...template, ide2: 'local-lvm:base-9001-disk-3,size=1G' },
      'has a disk on ide2',
    ],
    ['must have a NIC to move', withoutNic, 'has no net0'],
    ['must have a boot disk to grow', { ...template, boot: 'order=net0' }, 'has no boot disk'],
    [
      'must have a boot disk of known size to grow',
      { ...template, scsi0: 'local-lvm:base-9001-disk-0' },
      'has a boot disk scsi0 without a readable size=',
    ],
  ];
  for (const [title, values, problem] of problems) {
    it(title, () => {
      assert.ok(checkTemplate(values, wish)?.startsWith(said + problem));
    });
  }

  it('needs neither NIC nor sized boot disk when nothing is to change on them', () => {
    const values = { ...withoutNic, boot: 'order=net0', scsi0: 'local-lvm:base-9001-disk-0' };
    assert.equal(checkTemplate(values, { ...wish, wantsNetChange: false, diskGiB: null }), null);
  });

  it("answers in the specification's very words when it is not one", () => {
    assert.equal(
      checkTemplate({}, wish),
      'placement.image "x": template VM 9001 is not a template',
    );
  });

  it('shows its cloud-init drive in disk slots only', () => {
    assert.equal(cloudInitDrive({ ide2: 'local-lvm:cloudinit' }), 'ide2');
    assert.equal(cloudInitDrive({ unused0: 'local-lvm:vm-1-cloudinit', name: 'cloudinit' }), null);
  });
});

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

describe('the ISO on ide2', () => {
  it('is named by its volume id, whatever Proxmox appends', () => {
    const ide2 = 'proxy-seeds:iso/seed-101.iso,media=cdrom,size=366K';
    assert.equal(ideSeedVolid({ ide2 }), 'proxy-seeds:iso/seed-101.iso');
    assert.equal(
      ideSeedVolid({ ide2: 'size=366K,media=cdrom,file=proxy-seeds:iso/seed-101.iso' }),
      'proxy-seeds:iso/seed-101.iso',
    );
  });

  it('is none in an empty drive, without a drive, and where a disk is', () => {
    assert.equal(ideSeedVolid({ ide2: 'none,media=cdrom' }), null);
    assert.equal(ideSeedVolid({}), null);
    assert.equal(ideSeedVolid({ ide2: 'local:101/vm-101-disk-0.qcow2,size=1G' }), null);
  });
});

describe('the config write', () => {
  const isoVolid = 'proxy-seeds:iso/proxy-a-12ab34-6b1c0e6e-c0ffee-seed.iso';
  const wish: ConfigWish = {
    cores: 1,
    memoryMiB: 1024,
    isoVolid,
    bridge: null,
    vlanTag: 4,
    clearProtection: false,
  };
  const done: ConfigValues = {
    cores: '1',
    memory: '1024',
    agent: '1',
    tags: 'proxy_operator',
    ide2: `${isoVolid},media=cdrom,size=52K`,
    net0: 'virtio=BC:24:11:87:7D:7C,bridge=vmbr0,tag=4',
  };

  it("sets the specification's keys on a fresh clone", () => {
    const clone = { ...template, agent: '1,fstrim_cloned_disks=1', tags: 'debian;egress' };
    assert.deepEqual(configChanges(clone, wish), {
      set: {
        cores: '1',
        memory: '1024',
        agent: '1',
        tags: 'proxy_operator',
        ide2: `${isoVolid},media=cdrom`,
        net0: 'virtio=BC:24:11:87:7D:7C,bridge=vmbr0,tag=4',
      },
      delete: [],
    });
  });

  it('changes nothing that is as it should be', () => {
    assert.deepEqual(configChanges(done, wish), { set: {}, delete: [] });
  });

  const equal: [string, ConfigValues][] = [
    ['the agent is on in the long form', { agent: 'enabled=1' }],
    ['the agent is on in words', { agent: 'on' }],
    ['our tag is given twice and in capitals', { tags: 'Proxy_Operator, proxy_operator' }],
    ['memory is a property string', { memory: 'current=1024' }],
    ['ide2 has its parts in another order', { ide2: `media=cdrom,file=${isoVolid}` }],
  ];
  for (const [title, values] of equal) {
    it(`sees no difference when ${title}`, () => {
      assert.deepEqual(configChanges({ ...done, ...values }, wish).set, {});
    });
  }

  const different: [string, ConfigValues, Record<string, string>][] = [
    ['further agent options', { agent: '1,type=virtio' }, { agent: '1' }],
    ['an agent that is off', { agent: '0' }, { agent: '1' }],
    ['an agent that is off in the long form', { agent: 'enabled=0' }, { agent: '1' }],
    ['an agent that is missing', { agent: '' }, { agent: '1' }],
    ['another tag beside ours', { tags: 'egress;proxy_operator' }, { tags: 'proxy_operator' }],
    ['no tag', { tags: '' }, { tags: 'proxy_operator' }],
    ['other memory', { memory: '2048' }, { memory: '1024' }],
    ['an empty CD-ROM drive', { ide2: 'none,media=cdrom' }, { ide2: `${isoVolid},media=cdrom` }],
    [
      "another VM's seed",
      { ide2: 'proxy-seeds:iso/other-seed.iso,media=cdrom,size=52K' },
      { ide2: `${isoVolid},media=cdrom` },
    ],
    [
      'the seed on another storage',
      { ide2: `${isoVolid.replace('proxy-seeds', 'local')},media=cdrom` },
      { ide2: `${isoVolid},media=cdrom` },
    ],
  ];
  for (const [title, values, set] of different) {
    it(`corrects ${title}, and that alone`, () => {
      assert.deepEqual(configChanges({ ...done, ...values }, wish), { set, delete: [] });
    });
  }

  it('writes the default number of cores out', () => {
    const { cores: _cores, ...implicit } = done;
    assert.deepEqual(configChanges(implicit, wish).set, { cores: '1' });
  });

  it('leaves net0 alone without bridge and VLAN, and where there is none', () => {
    const net0 = 'virtio=BC:24:11:87:7D:7C,bridge=vmbr0';
    const { net0: _net0, ...withoutNic } = done;
    assert.deepEqual(configChanges({ ...done, net0 }, { ...wish, vlanTag: null }).set, {});
    assert.deepEqual(configChanges(withoutNic, wish).set, {});
  });

  it('clears inherited protection only where there is some and it is asked for', () => {
    const guarded = { ...done, protection: '1' };
    const clearing = { ...wish, clearProtection: true };
    assert.deepEqual(configChanges(guarded, clearing).delete, ['protection']);
    assert.deepEqual(configChanges(guarded, wish).delete, []);
    assert.deepEqual(configChanges(done, clearing).delete, []);
    assert.deepEqual(configChanges({ ...done, protection: '0' }, clearing).delete, []);
  });
});

describe('growing the boot disk', () => {
  it('asks for the absolute size, once', () => {
    assert.deepEqual(resizeTarget(template, 20, 3.5 * GiB), { disk: 'scsi0', size: '20G' });
    assert.equal(resizeTarget(template, 20, 20 * GiB), null);
  });

  it('never shrinks', () => {
    assert.equal(resizeTarget(template, 20, 1024 * GiB), null);
    assert.equal(resizeTarget(template, 3, 3.5 * GiB), null);
  });

  it('trusts the actual size, not the text in the config', () => {
    const grown = { ...template, scsi0: 'local-lvm:vm-101-disk-0,size=20G' };
    assert.deepEqual(resizeTarget(grown, 20, 3.5 * GiB), { disk: 'scsi0', size: '20G' });
  });

  it('grows a disk that rounding left one byte short', () => {
    assert.deepEqual(resizeTarget(template, 20, 20 * GiB - 1), { disk: 'scsi0', size: '20G' });
  });

  it('does nothing without a wish or without a boot disk', () => {
    assert.equal(resizeTarget(template, null, GiB), null);
    assert.equal(resizeTarget({ ...template, boot: 'order=net0' }, 20, GiB), null);
  });
});
