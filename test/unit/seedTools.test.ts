/**
 * Seeds read by programs that others wrote. They are needed, not optional: Debian packages genisoimage (isoinfo),
 * xorriso, libarchive-tools (bsdtar), util-linux (blkid) and python3.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { z } from 'zod';
import { guestAgentScript } from '../../activities/seed/guestAgent.ts';
import { buildSeed, vendorDataFor } from '../../activities/seed/nocloud.ts';

const execute = promisify(execFile);
const toolPackages: Readonly<Record<string, string>> = {
  isoinfo: 'genisoimage',
  xorriso: 'xorriso',
  bsdtar: 'libarchive-tools',
  blkid: 'util-linux',
  python3: 'python3',
};

/** Standard output as bytes. Throws with the missing package's name, or with what the tool complained about. */
async function tool(name: string, args: readonly string[]): Promise<Buffer> {
  const env = { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` };
  const options = { env, encoding: 'buffer', maxBuffer: 64 * 1024 ** 2 } as const;
  try {
    const { stdout } = await execute(name, args, options);
    return stdout;
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const hint = missing ? `; install the Debian package ${toolPackages[name]}` : '';
    throw new Error(`${name} ${args.join(' ')} failed${hint}`, { cause: error });
  }
}

const large = new Uint8Array(8 * 1024 ** 2);
for (let index = 0; index < large.length; index += 1) large[index] = (index * 131) >>> 5;
const vendorData = '#cloud-config\nntp: {enabled: true}\n# größer 日本\n';
const vmName = 'proxy-egress-a-12ab34-6b1c0e6e-c0ffee';
const metaData = `instance-id: ${vmName}\nlocal-hostname: ${vmName}\n`;

const seeds = [
  { title: 'a usual seed', userData: Buffer.from('#cloud-config\npackages: [squid]\n') },
  { title: 'a seed with empty user-data', userData: new Uint8Array() },
  { title: 'a seed with 8 MiB of user-data', userData: large },
];

for (const { title, userData } of seeds) {
  describe(title, () => {
    const expected: Record<string, Buffer> = {
      'meta-data': Buffer.from(metaData),
      'user-data': Buffer.from(userData),
      'vendor-data': Buffer.from(vendorDataFor(vendorData, true) ?? ''),
    };
    let folder = '';
    let image = '';
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'seed-'));
      image = join(folder, 'seed.iso');
      const seed = buildSeed({ vmName, userData, vendorData, installGuestAgent: true });
      await writeFile(image, seed);
    });
    after(() => rm(folder, { recursive: true }));

    it('is found by its label, as cloud-init looks for it', async () => {
      const found = (await tool('blkid', ['-p', '-o', 'export', image])).toString();
      assert.match(found, /^LABEL=cidata$/m);
      assert.match(found, /^TYPE=iso9660$/m);
    });

    it('has the names of NoCloud in Joliet and in Rock Ridge for isoinfo', async () => {
      for (const names of ['-J', '-R']) {
        const list = (await tool('isoinfo', [names, '-f', '-i', image])).toString().trim();
        assert.deepEqual(
          list.split('\n').toSorted(),
          Object.keys(expected).map((name) => `/${name}`),
        );
        for (const [name, bytes] of Object.entries(expected)) {
          const content = await tool('isoinfo', [names, '-x', `/${name}`, '-i', image]);
          assert.equal(Buffer.compare(content, bytes), 0, `${name} through isoinfo ${names}`);
        }
      }
    });

    it('is read by libarchive', async () => {
      const list = (await tool('bsdtar', ['-tf', image])).toString().trim().split('\n');
      assert.deepEqual(list.toSorted(), ['.', ...Object.keys(expected)]);
      for (const [name, bytes] of Object.entries(expected)) {
        const content = await tool('bsdtar', ['-xOf', image, name]);
        assert.equal(Buffer.compare(content, bytes), 0, name);
      }
    });

    it('is read by libisofs, whose check finds nothing wrong', async () => {
      for (const [name, bytes] of Object.entries(expected)) {
        const copy = join(folder, `copy-${name}`);
        const extract = ['-osirrox', 'on', '-indev', image, '-extract', `/${name}`, copy];
        await tool('xorriso', ['-abort_on', 'WARNING', '-report_about', 'WARNING', ...extract]);
        assert.equal(Buffer.compare(await readFile(copy), bytes), 0, name);
      }
    });
  });
}

const parsedMime = z.object({
  defects: z.array(z.string()),
  parts: z.array(
    z.object({ type: z.string(), filename: z.string().nullable(), content: z.string() }),
  ),
});

/** Parses as cloud-init does: message_from_string, walk, decoded payloads. */
const parseMime = `
import email, json, sys
message = email.message_from_string(open(sys.argv[1], "rb").read().decode("utf-8"))
parts, defects = [], []
for part in message.walk():
    defects += [type(defect).__name__ for defect in part.defects]
    if part.get_content_maintype() != "multipart":
        content = part.get_payload(decode=True).decode(part.get_content_charset() or "utf-8")
        parts.append({"type": part.get_content_type(), "filename": part.get_filename(), "content": content})
print(json.dumps({"defects": defects, "parts": parts}))
`;

async function mimeParts(text: string): Promise<z.infer<typeof parsedMime>> {
  const folder = await mkdtemp(join(tmpdir(), 'mime-'));
  try {
    const path = join(folder, 'vendor-data');
    await writeFile(path, text);
    const output = await tool('python3', ['-c', parseMime, path]);
    return parsedMime.parse(JSON.parse(output.toString()));
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe('vendor-data of two parts', () => {
  const script = {
    type: 'text/x-shellscript',
    filename: 'guest-agent.sh',
    content: guestAgentScript,
  };
  const contents = [
    vendorData,
    '#!/bin/sh\necho hello',
    '#cloud-config\nkey: |\n  --==0==\n  MIME-Version: 1.0\n',
    '#cloud-config\r\nkey: value\r\n',
    'x'.repeat(57 * 3),
  ];
  for (const content of contents) {
    it(`is clean MIME for Python's parser: ${JSON.stringify(content.slice(0, 40))}`, async () => {
      assert.deepEqual(await mimeParts(vendorDataFor(content, true) ?? ''), {
        defects: [],
        parts: [script, { type: 'text/plain', filename: 'vendor-data', content }],
      });
    });
  }

  it('nests vendor-data that is a MIME message itself', async () => {
    const nested = [
      'Content-Type: multipart/mixed; boundary="inner"',
      'MIME-Version: 1.0',
      '',
      '--inner',
      'Content-Type: text/cloud-config',
      '',
      '#cloud-config',
      '--inner--',
      '',
    ].join('\n');
    assert.deepEqual(await mimeParts(vendorDataFor(nested, true) ?? ''), {
      defects: [],
      parts: [script, { type: 'text/cloud-config', filename: null, content: '#cloud-config' }],
    });
  });

  it('is recognised as MIME by the marks cloud-init looks for', () => {
    const head = (vendorDataFor(vendorData, true) ?? '').slice(0, 4096).toLowerCase();
    assert.ok(head.startsWith('content-type: multipart/mixed; '));
    assert.ok(head.includes('mime-version:'));
  });
});
