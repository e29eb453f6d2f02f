import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { z } from 'zod';
import { canonicalJson, specHash } from '../../activities/vm/specHash.ts';
import type { SpecHashInput } from '../../activities/vm/specHash.ts';

const nullableText = z.string().nullable();
const { vectors } = z
  .object({
    vectors: z.array(
      z.object({
        name: z.string(),
        mode: z.enum(['Managed', 'External']),
        provider: nullableText,
        placement: z.object({
          region: nullableText,
          zone: nullableText,
          machineType: nullableText,
          image: nullableText,
        }),
        cloudInit: nullableText.optional(),
        cloudInitBase64: z.string().optional(),
        sha256: z.string(),
      }),
    ),
  })
  .parse(
    JSON.parse(
      readFileSync(new URL('../../testdata/spec-hash-vectors.json', import.meta.url), 'utf8'),
    ),
  );

const spec: SpecHashInput = {
  mode: 'Managed',
  provider: 'proxmox-home',
  placement: { region: null, zone: 'pv1-1', machineType: 'small', image: 'debian-13' },
  cloudInit: '#cloud-config\n',
};

describe('the spec hash', () => {
  for (const { name, cloudInit, cloudInitBase64, sha256, ...rest } of vectors) {
    it(`is as published: ${name}`, () => {
      const content =
        cloudInitBase64 === undefined
          ? (cloudInit ?? null)
          : new Uint8Array(Buffer.from(cloudInitBase64, 'base64'));
      assert.equal(specHash({ ...rest, cloudInit: content }), sha256);
    });
  }

  it('is the same for content from the object and from a Secret', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const bytes = new TextEncoder().encode(text);
        assert.equal(
          specHash({ ...spec, cloudInit: text }),
          specHash({ ...spec, cloudInit: bytes }),
        );
      }),
    );
  });

  it('differs when a byte of the content differs, UTF-8 or not', () => {
    const different = fc
      .tuple(fc.uint8Array({ maxLength: 12 }), fc.uint8Array({ maxLength: 12 }))
      .filter(([one, other]) => Buffer.compare(one, other) !== 0);
    fc.assert(
      fc.property(different, ([one, other]) => {
        assert.notEqual(
          specHash({ ...spec, cloudInit: one }),
          specHash({ ...spec, cloudInit: other }),
        );
      }),
    );
  });

  it('differs with every field', () => {
    const { placement } = spec;
    const variants: SpecHashInput[] = [
      spec,
      { ...spec, mode: 'External' },
      { ...spec, provider: 'other' },
      { ...spec, provider: null },
      { ...spec, cloudInit: '#cloud-config' },
      { ...spec, cloudInit: null },
      { ...spec, placement: { ...placement, region: 'eu' } },
      { ...spec, placement: { ...placement, zone: null } },
      { ...spec, placement: { ...placement, machineType: 'large' } },
      { ...spec, placement: { ...placement, image: 'debian-12' } },
    ];
    assert.equal(new Set(variants.map(specHash)).size, variants.length);
  });

  it('does not depend on the order of fields, nor on fields that are none of its business', () => {
    const { mode, provider, placement, cloudInit } = spec;
    const { region, zone, machineType, image } = placement;
    const reordered = {
      port: 3128,
      cloudInit,
      placement: { image, machineType, zone, region, note: 'x' },
      provider,
      mode,
    };
    assert.equal(specHash(reordered), specHash(spec));
  });
});

describe('canonical JSON', () => {
  it("is that of RFC 8785's own example of order", () => {
    const members = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\u{1f600}': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    const order = [...canonicalJson(members).matchAll(/:"(?<value>[^"]*)"/g)].map(
      (match) => match.groups?.value,
    );
    assert.deepEqual(order, [
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  it('has no blanks and nests', () => {
    assert.equal(
      canonicalJson({ b: [1e21, 0.5, true, null], a: { z: '\u0007"', y: [] } }),
      '{"a":{"y":[],"z":"\\u0007\\""},"b":[1e+21,0.5,true,null]}',
    );
  });
});
