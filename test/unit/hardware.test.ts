import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  checkTemplate,
  cloudInitDrive,
  configChanges,
  ideSeedVolid,
  resizeTarget,
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
