import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { crdFiles } from '../../api/crd.ts';
import { maxCloudInitBytes, providerNamePattern } from '../../api/proxySpec.ts';
import { loadProvidersConfig } from '../../api/providersConfig.ts';

const folder = new URL('../../deploy/crds/', import.meta.url);

interface Schema {
  description?: string | undefined;
  type: string;
  properties?: Record<string, Schema> | undefined;
  items?: Schema | undefined;
  additionalProperties?: Schema | undefined;
}
// Strict: a keyword that Kubernetes does not take in a structural schema fails here, not at `kubectl apply`.
const schema: z.ZodType<Schema> = z.lazy(() =>
  z.strictObject({
    description: z.string().optional(),
    type: z.enum(['object', 'array', 'string', 'integer', 'number', 'boolean']),
    properties: z.record(z.string(), schema).optional(),
    items: schema.optional(),
    additionalProperties: schema.optional(),
    required: z.array(z.string()).optional(),
    default: z.unknown().optional(),
    enum: z.array(z.string()).optional(),
    format: z.enum(['int64', 'date-time']).optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
    'x-kubernetes-list-type': z.string().optional(),
    'x-kubernetes-list-map-keys': z.array(z.string()).optional(),
    'x-kubernetes-validations': z
      .array(
        z.strictObject({
          rule: z.string(),
          message: z.string(),
          fieldPath: z.string().optional(),
          reason: z.string().optional(),
        }),
      )
      .optional(),
  }),
);
const definition = z.object({
  spec: z.object({
    versions: z.tuple([
      z.object({
        additionalPrinterColumns: z.array(z.object({ jsonPath: z.string() })),
        schema: z.object({ openAPIV3Schema: schema }),
      }),
    ]),
  }),
});

test('deploy/crds holds what the schemas in api/ generate (npm run generate:crds)', () => {
  const expected = Object.fromEntries(crdFiles().map(({ name, text }) => [name, text]));
  const files = readdirSync(folder).map((name) => [
    name,
    readFileSync(new URL(name, folder), 'utf8'),
  ]);
  assert.deepEqual(Object.fromEntries(files), expected);
});

for (const { name, text } of crdFiles()) {
  const [version] = definition.parse(parse(text)).spec.versions;
  const root = version.schema.openAPIV3Schema;

  test(`${name}: kubectl explain has words for every field`, () => {
    const silent = fieldsOf(root, '').filter(
      ([path, field]) => field.description === undefined && path !== '.metadata',
    );
    assert.deepEqual(
      silent.map(([path]) => path),
      [],
    );
  });

  test(`${name}: every column shows a field of the schema`, () => {
    const paths = new Set(fieldsOf(root, '').map(([path]) => path));
    for (const { jsonPath } of version.additionalPrinterColumns) {
      const path = jsonPath.replace(/\[.*\]/, '[]');
      assert.ok(paths.has(path) || path === '.metadata.creationTimestamp', jsonPath);
    }
  });
}

test('a provider that spec.provider may name may also stand in the providers config, and the reverse', () => {
  const pattern = new RegExp(providerNamePattern);
  const fileNamed = (name: string): string => {
    const template = new URL('../../testdata/config/good/minimal.yaml', import.meta.url);
    return readFileSync(template, 'utf8').replace('proxmox-home', JSON.stringify(name));
  };
  for (const name of [
    'a',
    '1',
    'a-b',
    'p'.repeat(40),
    'p'.repeat(41),
    '-a',
    'a-',
    'A',
    'a.b',
    '',
  ]) {
    if (pattern.test(name)) loadProvidersConfig(fileNamed(name), name);
    else assert.throws(() => loadProvidersConfig(fileNamed(name), name), { name: 'ConfigError' });
  }
});

test('the bound of cloud-init is 256 KiB', () => {
  assert.equal(maxCloudInitBytes, 262_144);
});

function fieldsOf(field: Schema, path: string): [string, Schema][] {
  const inside = Object.entries(field.properties ?? {}).flatMap(([name, member]) => [
    [`${path}.${name}`, member] satisfies [string, Schema],
    ...fieldsOf(member, `${path}.${name}`),
  ]);
  const items = field.items === undefined ? [] : fieldsOf(field.items, `${path}[]`);
  return [...inside, ...items];
}
