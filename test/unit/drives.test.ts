import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bootDisk, diskKeys, parseDrive, parseSize } from '../../activities/vm/hardware.ts';
import type { ConfigValues } from '../../activities/vm/hardware.ts';

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
