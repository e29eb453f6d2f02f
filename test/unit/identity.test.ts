import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { z } from 'zod';
import {
  fnv1a32,
  installationHex,
  parseSeedFile,
  parseVmName,
  seedFileFor,
  seedVolidFor,
  vmNameFor,
  vmidCandidates,
} from '../../activities/vm/identity.ts';

const vmidVectors = z
  .object({
    hashes: z.array(z.object({ text: z.string(), fnv1a32: z.string() })),
    vectors: z.array(
      z.object({
        uid: z.string(),
        min: z.number(),
        max: z.number(),
        candidates: z.array(z.number()),
      }),
    ),
  })
  .parse(
    JSON.parse(readFileSync(new URL('../../testdata/vmid-vectors.json', import.meta.url), 'utf8')),
  );

const uid = '6b1c0e6e-9f2d-4c1a-8e11-3d5f7a9b0c21';
const specHash = 'c0ffee'.padEnd(64, '0');

function nameOf(proxyName: string): string {
  return vmNameFor({ proxyName, uid, installationHex: '12ab34', specHash });
}

const hex = (length: number) =>
  fc.string({
    unit: fc.constantFrom(...Array.from('0123456789abcdef')),
    minLength: length,
    maxLength: length,
  });
const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/);
const objectName = fc
  .array(label, { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join('.').slice(0, 253));
const nameParts = fc.record({
  proxyName: objectName,
  uid: fc.uuid(),
  installationHex: hex(6),
  specHash: hex(64),
});

describe('VM names', () => {
  it('carries slug, installation, UID and spec hash, in this order', () => {
    assert.equal(nameOf('egress-a'), 'proxy-egress-a-12ab34-6b1c0e6e-c0ffee');
  });

  const slugs: [string, string, string][] = [
    ['turns dots into dashes', 'eu.west.a', 'eu-west-a'],
    ['cuts a long name at 20 characters', 'abcdefghijklmnopqrstuvwxyz', 'abcdefghijklmnopqrst'],
    ['leaves no dash where the cut falls on one', 'abcdefghijklmnopqrs-uvw', 'abcdefghijklmnopqrs'],
    [
      'leaves no dash where the cut falls on a dot',
      'abcdefghijklmnopqrs.uvw',
      'abcdefghijklmnopqrs',
    ],
    ['takes off several dashes at the cut', 'abcdefghijklmnop-.--x', 'abcdefghijklmnop'],
    ['starts with a letter or digit even if the name does not', '--.a', 'a'],
    ['keeps a name of one character', '7', '7'],
    ['stands in for a name without letters and digits', '.-.', 'x'],
    ['writes capitals small', 'Egress', 'egress'],
  ];
  for (const [title, proxyName, slug] of slugs) {
    it(title, () => {
      assert.equal(parseVmName(nameOf(proxyName))?.slug, slug);
    });
  }

  it('is the same for a UID in capitals', () => {
    const upper = { proxyName: 'a', uid: uid.toUpperCase(), installationHex: '12AB34', specHash };
    assert.equal(vmNameFor(upper), nameOf('a'));
  });

  it('is a DNS label of at most 49 characters that parses back, for every object name', () => {
    fc.assert(
      fc.property(nameParts, (parts) => {
        const name = vmNameFor(parts);
        assert.match(name, /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
        assert.ok(name.length <= 49, name);
        const parsed = parseVmName(name);
        assert.equal(parsed?.installationHex, parts.installationHex);
        assert.equal(parsed?.uidPrefix, parts.uid.slice(0, 8));
        assert.equal(parsed?.specPrefix, parts.specHash.slice(0, 6));
        assert.ok(parsed !== null && parsed.slug.length >= 1 && parsed.slug.length <= 20);
      }),
    );
  });

  it('reads a slug that itself looks like the parts after it', () => {
    assert.deepEqual(parseVmName('proxy-123456-12345678-abc-12ab34-6b1c0e6e-c0ffee'), {
      slug: '123456-12345678-abc',
      installationHex: '12ab34',
      uidPrefix: '6b1c0e6e',
      specPrefix: 'c0ffee',
    });
  });

  const foreign = [
    '',
    'VM 110',
    'web-1',
    'proxy-12ab34-6b1c0e6e-c0ffee',
    'proxy--a-12ab34-6b1c0e6e-c0ffee',
    'proxy-a--12ab34-6b1c0e6e-c0ffee',
    'proxy-a-12ab34-6b1c0e6e-c0ffe',
    'proxy-a-12ab34-6b1c0e6e-c0ffee-2',
    'proxy-a-12AB34-6b1c0e6e-c0ffee',
    'proxy-a-12ab34-6b1c0e6e-c0ffee.lan',
    'proxy-a-12ab34-6b1c0e6e-c0ffee\n',
    'my-proxy-a-12ab34-6b1c0e6e-c0ffee',
    'Copy-of-VM-proxy-a-12ab34-6b1c0e6e-c0ffee',
    'proxy-abcdefghijklmnopqrstu-12ab34-6b1c0e6e-c0ffee',
  ];
  for (const name of foreign) {
    it(`does not take ${JSON.stringify(name)} for one of ours`, () => {
      assert.equal(parseVmName(name), null);
    });
  }

  it('refuses to make a name that would not be recognised again', () => {
    const good = { proxyName: 'a', uid, installationHex: '12ab34', specHash };
    assert.throws(() => vmNameFor({ ...good, uid: 'not-a-uid' }), /UID "not-a-uid"/);
    assert.throws(() => vmNameFor({ ...good, uid: '' }), TypeError);
    assert.throws(() => vmNameFor({ ...good, installationHex: '12ab3' }), /installation hex/);
    assert.throws(() => vmNameFor({ ...good, specHash: 'sha256:00' }), /spec hash/);
  });
});

describe('the installation in a VM name', () => {
  it('is the start of the SHA-256 of the installation id', () => {
    assert.equal(installationHex('abc'), 'ba7816');
    assert.equal(installationHex(''), 'e3b0c4');
  });
});

describe('seed files', () => {
  it('are named after the VM and found again by that name', () => {
    const name = nameOf('egress-a');
    assert.equal(seedFileFor(name), `${name}-seed.iso`);
    assert.equal(
      seedVolidFor('proxy-seeds', seedFileFor(name)),
      `proxy-seeds:iso/${name}-seed.iso`,
    );
    assert.deepEqual(parseSeedFile(seedFileFor(name)), {
      vmName: name,
      slug: 'egress-a',
      installationHex: '12ab34',
      uidPrefix: '6b1c0e6e',
      specPrefix: 'c0ffee',
    });
  });

  it('are not mistaken for other ISO files', () => {
    for (const file of ['debian-13.iso', 'proxy-abc-seed.iso', `${nameOf('a')}.iso`, '-seed.iso']) {
      assert.equal(parseSeedFile(file), null, file);
    }
  });
});

describe('VMIDs', () => {
  for (const { text, fnv1a32: expected } of vmidVectors.hashes) {
    it(`hashes ${JSON.stringify(text)} as published`, () => {
      assert.equal(fnv1a32(text).toString(16).padStart(8, '0'), expected);
    });
  }

  it('agrees with the test vectors of FNV-1a itself', () => {
    assert.equal(fnv1a32(''), 0x811c9dc5);
    assert.equal(fnv1a32('a'), 0xe40c292c);
    assert.equal(fnv1a32('foobar'), 0xbf9cf968);
  });

  for (const { uid: text, min, max, candidates } of vmidVectors.vectors) {
    it(`tries the published VMIDs for ${text} in ${min} to ${max}`, () => {
      assert.deepEqual(vmidCandidates(text, min, max), candidates);
    });
  }

  it('tries up to 32 different VMIDs of the range, each one after the other and wrapping', () => {
    const range = fc
      .tuple(fc.integer({ min: 100, max: 999_999 }), fc.integer({ min: 0, max: 200 }))
      .map(([min, more]) => ({ min, max: min + more }));
    fc.assert(
      fc.property(fc.uuid(), range, (text, { min, max }) => {
        const candidates = vmidCandidates(text, min, max);
        assert.equal(candidates.length, Math.min(32, max - min + 1));
        assert.equal(new Set(candidates).size, candidates.length);
        for (const [index, vmid] of candidates.entries()) {
          assert.ok(vmid >= min && vmid <= max);
          const before = candidates[index - 1];
          if (before !== undefined) assert.equal(vmid, before === max ? min : before + 1);
        }
      }),
    );
  });

  it('refuses a range that is empty or reaches below 100', () => {
    assert.throws(() => vmidCandidates(uid, 99, 200), RangeError);
    assert.throws(() => vmidCandidates(uid, 200, 199), RangeError);
    assert.throws(() => vmidCandidates(uid, Number.NaN, 199), RangeError);
  });
});
