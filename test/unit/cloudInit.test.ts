/** Seeds read by cloud-init itself: its NoCloud data source and its user-data processor. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { guestAgentScript } from '../../activities/seed/guestAgent.ts';
import { buildSeed, type SeedInput } from '../../activities/seed/nocloud.ts';
import { readWithCloudInit, type SeedPart } from '../support/cloudInitReader.ts';

const vmName = 'proxy-egress-a-12ab34-6b1c0e6e-c0ffee';
const usual = '#cloud-config\npackages: [squid]\n';

function seedOf(fields: Partial<SeedInput>): Uint8Array {
  const userData = Buffer.from(usual);
  return buildSeed({ vmName, userData, vendorData: null, installGuestAgent: false, ...fields });
}

/** Text without NUL that looks like anything but text. */
function binaryLooking(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, index) => 1 + (((index * 131) >>> 3) % 255)));
}

const script = {
  type: 'text/x-shellscript',
  filename: 'guest-agent.sh',
  content: guestAgentScript,
};

function told({ type, filename, content }: SeedPart): Record<string, unknown> {
  return { type, filename, content: content.toString() };
}

describe('cloud-init reads user-data byte for byte', () => {
  const texts: Record<string, Buffer> = {
    'a usual one': Buffer.from(usual),
    'an empty one': Buffer.alloc(0),
    'a single byte': Buffer.from('x'),
    'one byte less than a sector': Buffer.alloc(2_047, 'x'),
    'a whole sector': Buffer.alloc(2_048, 'x'),
    'one byte more than a sector': Buffer.alloc(2_049, 'x'),
    'the largest that a Proxy may have': Buffer.alloc(256 * 1024, '#cloud-config\n'),
    '8 MiB': binaryLooking(8 * 1024 ** 2),
    'UTF-8': Buffer.from('#cloud-config\n# größer 日本 🛰 e\u0301\n'),
    'a byte order mark': Buffer.from('\uFEFF#cloud-config\n'),
    'lines that end in CRLF': Buffer.from('#cloud-config\r\na: b\r\n'),
    'lines that end in anything': Buffer.from('#!/bin/sh\recho a\n\r\n\n\techo b \u2028\u0085'),
    'text that looks binary': binaryLooking(5_000),
    'no line end at the end': Buffer.from('#cloud-config'),
  };
  for (const [title, userData] of Object.entries(texts)) {
    it(title, async () => {
      const { found, ...read } = await readWithCloudInit(seedOf({ userData }));
      assert.ok(found, 'the data source is NoCloud');
      assert.equal(read.instanceId, vmName);
      assert.equal(read.hostname, vmName);
      assert.equal(Buffer.compare(read.userData, userData), 0, 'as it lies in the drive');
      const [only, ...more] = read.userParts;
      assert.deepEqual(more, []);
      assert.equal(
        Buffer.compare(only?.content ?? Buffer.of(1), userData),
        0,
        'as it is handed on',
      );
    });
  }

  it('takes apart what it packs itself: gzip, and a MIME message', async () => {
    const message = [
      'Content-Type: multipart/mixed; boundary="b"',
      'MIME-Version: 1.0',
      '',
      '--b',
      'Content-Type: text/cloud-config',
      '',
      '#cloud-config',
      '--b--',
      '',
    ].join('\n');
    for (const userData of [gzipSync(message), Buffer.from(message)]) {
      const read = await readWithCloudInit(seedOf({ userData }));
      assert.equal(Buffer.compare(read.userData, userData), 0);
      assert.deepEqual(
        read.userParts.map(({ type, content }) => [type, content.toString()]),
        [['text/cloud-config', '#cloud-config']],
      );
    }
  });
});

describe('cloud-init takes vendor-data apart', () => {
  const cloudConfigs = {
    'a cloud-config': '#cloud-config\nntp: {enabled: true}\n# größer 日本\n',
    'lines that end in CRLF': '#cloud-config\r\nntp: {enabled: true}\r\n',
    'lines that look like MIME': '#cloud-config\nkey: |\n  --==0==\n  MIME-Version: 1.0\n',
    'no line end at the end': '#cloud-config',
  };
  for (const [title, vendorData] of Object.entries(cloudConfigs)) {
    it(`into the script of the guest agent and ${title}`, async () => {
      const seed = seedOf({ vendorData, installGuestAgent: true });
      const { vendorParts, userParts } = await readWithCloudInit(seed);
      const own = { type: 'text/cloud-config', filename: 'vendor-data', content: vendorData };
      assert.deepEqual(vendorParts.map(told), [script, own]);
      assert.deepEqual(
        userParts.map(({ type, content }) => [type, content.toString()]),
        [['text/cloud-config', usual]],
      );
    });
  }

  it('into two scripts', async () => {
    const vendorData = '#!/bin/sh\necho hello';
    const { vendorParts } = await readWithCloudInit(
      seedOf({ vendorData, installGuestAgent: true }),
    );
    const own = { type: 'text/x-shellscript', filename: 'vendor-data', content: vendorData };
    assert.deepEqual(vendorParts.map(told), [script, own]);
  });

  it('into the script and the parts of a MIME message', async () => {
    const vendorData = [
      'Content-Type: multipart/mixed; boundary="inner"',
      'MIME-Version: 1.0',
      '',
      '--inner',
      'Content-Type: text/cloud-config; charset="utf-8"',
      '',
      '#cloud-config',
      '--inner',
      'Content-Type: text/x-shellscript',
      '',
      '#!/bin/sh',
      '--inner--',
      '',
    ].join('\n');
    const { vendorParts } = await readWithCloudInit(
      seedOf({ vendorData, installGuestAgent: true }),
    );
    assert.deepEqual(
      vendorParts.map(({ type, content }) => [type, content.toString()]),
      [
        [script.type, script.content],
        ['text/cloud-config', '#cloud-config'],
        ['text/x-shellscript', '#!/bin/sh'],
      ],
    );
  });

  it('into the script alone, when there is nothing else', async () => {
    const { vendorData, vendorParts } = await readWithCloudInit(
      seedOf({ installGuestAgent: true }),
    );
    assert.equal(vendorData.toString(), guestAgentScript);
    assert.deepEqual(
      vendorParts.map(({ type, content }) => [type, content.toString()]),
      [[script.type, guestAgentScript]],
    );
  });

  it("into the provider's own alone, when no guest agent is wanted", async () => {
    const own = cloudConfigs['lines that end in CRLF'];
    const { vendorData, vendorParts } = await readWithCloudInit(seedOf({ vendorData: own }));
    assert.equal(vendorData.toString(), own);
    assert.deepEqual(
      vendorParts.map(({ type, content }) => [type, content.toString()]),
      [['text/cloud-config', own]],
    );
  });

  it('into nothing, when there is none', async () => {
    const { vendorData } = await readWithCloudInit(seedOf({}));
    assert.equal(vendorData.length, 0);
  });
});
