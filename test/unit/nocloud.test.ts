import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { z } from 'zod';
import { guestAgentScript } from '../../activities/seed/guestAgent.ts';
import { buildSeed, vendorDataFor } from '../../activities/seed/nocloud.ts';
import type { SeedInput } from '../../activities/seed/nocloud.ts';
import { readIsoStrictly } from '../support/isoReader.ts';

const input: SeedInput = {
  vmName: 'proxy-egress-a-12ab34-6b1c0e6e-c0ffee',
  userData: Buffer.from('#cloud-config\npackages: [squid]\n'),
  vendorData: null,
  installGuestAgent: true,
};

function filesOf(seed: Uint8Array): Map<string, Buffer> {
  return new Map(readIsoStrictly(seed).joliet.map(({ name, bytes }) => [name, bytes]));
}

const { seeds: golden } = z
  .object({
    seeds: z.array(
      z.object({
        name: z.string(),
        vmName: z.string(),
        userDataBase64: z.string(),
        vendorData: z.string().nullable(),
        installGuestAgent: z.boolean(),
        bytes: z.number(),
        sha256: z.string(),
      }),
    ),
  })
  .parse(
    JSON.parse(readFileSync(new URL('../../testdata/seed/golden.json', import.meta.url), 'utf8')),
  );

describe('the seed', () => {
  it('is labelled cidata, where cloud-init looks for it', () => {
    assert.equal(readIsoStrictly(buildSeed(input)).label, 'cidata');
  });

  it('names the VM as instance and host', () => {
    assert.equal(
      filesOf(buildSeed(input)).get('meta-data')?.toString(),
      'instance-id: proxy-egress-a-12ab34-6b1c0e6e-c0ffee\nlocal-hostname: proxy-egress-a-12ab34-6b1c0e6e-c0ffee\n',
    );
  });

  it('is of some tens of KiB with a usual cloud-init', () => {
    const { length } = buildSeed(input);
    assert.ok(length > 10 * 1024 && length < 100 * 1024, `${length} bytes`);
  });

  it('passes user-data on byte for byte, whatever it is', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 9000 }), (userData) => {
        const files = filesOf(buildSeed({ ...input, userData }));
        assert.deepEqual(files.get('user-data'), Buffer.from(userData));
      }),
    );
  });

  it('has no vendor-data when there is none', () => {
    const seed = buildSeed({ ...input, installGuestAgent: false });
    assert.deepEqual([...filesOf(seed).keys()], ['meta-data', 'user-data']);
  });

  it('carries the guest-agent script alone as a script', () => {
    assert.equal(filesOf(buildSeed(input)).get('vendor-data')?.toString(), guestAgentScript);
    assert.ok(guestAgentScript.startsWith('#!/bin/sh\n'));
  });

  it("carries the provider's vendor-data alone as it is", () => {
    const vendorData = '#cloud-config\r\nhostname: größer\n\n';
    const seed = buildSeed({ ...input, vendorData, installGuestAgent: false });
    assert.equal(filesOf(seed).get('vendor-data')?.toString(), vendorData);
  });

  it('does not make a part of blank vendor-data', () => {
    assert.equal(vendorDataFor(' \n', true), guestAgentScript);
    assert.equal(vendorDataFor('\n', false), null);
  });

  it('is the same every time, and another one for other input', () => {
    const variants: SeedInput[] = [
      input,
      { ...input, vmName: 'proxy-egress-b-12ab34-6b1c0e6e-c0ffee' },
      { ...input, userData: Buffer.from('#cloud-config\npackages: [squid]') },
      { ...input, vendorData: '#cloud-config\n' },
      { ...input, vendorData: '#cloud-config\n', installGuestAgent: false },
      { ...input, installGuestAgent: false },
    ];
    const digest = (seed: Uint8Array) => createHash('sha256').update(seed).digest('hex');
    const digests = variants.map((variant) => digest(buildSeed(variant)));
    assert.deepEqual(
      variants.map((variant) => digest(buildSeed(variant))),
      digests,
    );
    assert.equal(new Set(digests).size, variants.length);
  });

  for (const { name, userDataBase64, bytes, sha256, ...rest } of golden) {
    it(`has the golden bytes: ${name}`, () => {
      const userData = new Uint8Array(Buffer.from(userDataBase64, 'base64'));
      const seed = buildSeed({ ...rest, userData });
      const digest = createHash('sha256').update(seed).digest('hex');
      assert.deepEqual({ bytes: seed.length, sha256: digest }, { bytes, sha256 });
    });
  }
});
