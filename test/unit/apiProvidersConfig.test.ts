import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { nearestKey } from '../../api/configKeys.ts';
import {
  ConfigError,
  loadProvidersConfig,
  type ProvidersConfig,
} from '../../api/providersConfig.ts';
import { templateVmidFor } from '../../api/proxmoxConfig.ts';

const folder = new URL('../../testdata/config/', import.meta.url);

function read(path: string): string {
  return readFileSync(new URL(path, folder), 'utf8');
}

function names(kind: 'good' | 'bad'): string[] {
  const files = readdirSync(new URL(kind, folder)).filter((file) => file.endsWith('.yaml'));
  return files.map((file) => file.slice(0, -'.yaml'.length));
}

function problemsIn(text: string): readonly string[] {
  try {
    loadProvidersConfig(text, 'providers.yaml');
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems;
  }
  return [];
}

for (const name of names('good')) {
  test(`good/${name}.yaml is accepted with the defaults of good/${name}.json`, () => {
    const config = loadProvidersConfig(read(`good/${name}.yaml`), `${name}.yaml`);
    assert.deepEqual(JSON.parse(JSON.stringify(config)), JSON.parse(read(`good/${name}.json`)));
  });
}

for (const name of names('bad')) {
  test(`bad/${name}.yaml is refused with all problems of bad/${name}.problems.txt`, () => {
    const expected = read(`bad/${name}.problems.txt`).trimEnd().split('\n');
    assert.deepEqual(problemsIn(read(`bad/${name}.yaml`)), expected);
  });
}

const withSecret = names('bad').filter((name) =>
  read(`bad/${name}.yaml`).includes('canary-secret'),
);
for (const name of withSecret) {
  test(`the problems of bad/${name}.yaml do not repeat the secret in the file`, () => {
    assert.doesNotMatch(problemsIn(read(`bad/${name}.yaml`)).join('\n'), /canary|3f2a1b4c/);
  });
}

test('the error names the file and lists every problem on a line of its own', () => {
  assert.throws(() => loadProvidersConfig('providers: 1\ncolour: red', '/etc/x/providers.yaml'), {
    name: 'ConfigError',
    message:
      '/etc/x/providers.yaml is not accepted:\n' +
      '  providers: must be a list\n' +
      '  colour: is not a known key; known here: providers',
  });
});

test('an accepted config is a snapshot that nobody can change', () => {
  const config = loadProvidersConfig(read('good/full.yaml'), 'full.yaml');
  const [provider] = config.providers;
  assert.ok(provider);
  for (const part of [config, config.providers, provider, ...Object.values(provider.proxmox)]) {
    assert.ok(Object.isFrozen(part));
  }
  assert.ok(Object.isFrozen(provider.proxmox.templates['mixed']?.vmids));
});

test('a catalogue knows only what the file lists, not what every object inherits', () => {
  const [provider] = minimal().providers;
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.equal(provider?.proxmox.templates[name], undefined);
    assert.equal(provider?.proxmox.machineTypes[name], undefined);
    assert.equal(provider?.proxmox.templates['debian-13']?.vmids[name], undefined);
  }
});

test('whatever is typed into the file, the answer is a config or a list of problems', () => {
  const text = read('good/full.yaml');
  const slip = fc.record({
    at: fc.nat(text.length),
    drop: fc.nat(12),
    put: fc.oneof(
      fc.string({ maxLength: 4 }),
      fc.constantFrom('\n', '\t', '- ', ': ', '{', '&a ', '*a'),
    ),
  });
  fc.assert(
    fc.property(fc.array(slip, { minLength: 1, maxLength: 3 }), (slips) => {
      const typed = slips.reduce(
        (edited, { at, drop, put }) => edited.slice(0, at) + put + edited.slice(at + drop),
        text,
      );
      assert.ok(Array.isArray(problemsIn(typed)));
    }),
    { numRuns: 300 },
  );
});

test('a key named __proto__ in the file is refused', () => {
  const text = read('good/minimal.yaml').replace('debian-13:', '__proto__:');
  assert.notDeepEqual(problemsIn(text), []);
});

test("a VM is cloned from its node's copy, else from the one template", () => {
  const mixed = loadProvidersConfig(read('good/full.yaml'), 'full.yaml').providers[0]?.proxmox;
  const on = (image: string, node: string): number | null | undefined => {
    const entry = mixed?.templates[image];
    return entry && templateVmidFor(entry, node);
  };
  assert.equal(on('mixed', 'pv1-1'), 9003);
  assert.equal(on('mixed', 'pv1-2'), 9004);
  assert.equal(on('Debian_13.local', 'pv1-2'), 9002);
  assert.equal(on('debian-13', 'pv1-2'), 100);
});

const misspelled: [written: string, meant: string | undefined][] = [
  ['vlantag', 'vlanTag'],
  ['vlan', 'vlanTag'],
  ['isoStorge', 'isoStorage'],
  ['nods', 'nodes'],
  ['storages', 'storage'],
  ['x', undefined],
  ['password', undefined],
];
for (const [written, meant] of misspelled) {
  test(`for the unknown key ${written} the nearest known one is ${meant ?? 'none'}`, () => {
    const known = ['url', 'nodes', 'isoStorage', 'storage', 'vlanTag', 'vendorData'];
    assert.equal(nearestKey(written, known), meant);
  });
}

function minimal(): ProvidersConfig {
  return loadProvidersConfig(read('good/minimal.yaml'), 'minimal.yaml');
}
