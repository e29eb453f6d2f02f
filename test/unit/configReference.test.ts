import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConfigError, loadProvidersConfig } from '../../api/providersConfig.ts';
import type { ProxmoxConfig } from '../../api/proxmoxConfig.ts';

type Block = Record<string, unknown>;

/** The required fields, and no others. */
const required: Block = {
  url: 'https://192.168.0.8:8006',
  tokenFile: '/etc/proxy-operator/proxmox/token',
  nodes: ['pv1-1'],
  isoStorage: 'proxy-seeds',
  templates: { 'debian-13': { vmid: 9001 } },
  machineTypes: { small: { cores: 1, memoryMiB: 1024 } },
};

function load(block: Block): ProxmoxConfig {
  const file = { providers: [{ name: 'proxmox-home', type: 'proxmox', proxmox: block }] };
  const [provider] = loadProvidersConfig(JSON.stringify(file), 'providers.yaml').providers;
  if (provider === undefined) throw new Error('the file has no provider');
  return provider.proxmox;
}

/** The problems of a block, without the path of the provider. */
function problemsOf(block: Block): string[] {
  try {
    load(block);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems.map((problem) => problem.replace('providers[0].proxmox.', ''));
  }
  return [];
}

const small = { cores: 1, memoryMiB: 1024 };
const withTemplate = (vmid: number): Block => ({ templates: { t: { vmid } } });
const withSize = (size: Block): Block => ({ machineTypes: { m: { ...small, ...size } } });

/** Lowest and highest value that a field takes. */
const bounds: [field: string, low: number, high: number, block: (value: number) => Block][] = [
  ['vlanTag', 1, 4094, (vlanTag) => ({ vlanTag })],
  ['vmidRange.min', 100, 199_998, (min) => ({ vmidRange: { min } })],
  ['vmidRange.max', 100_001, 999_999_999, (max) => ({ vmidRange: { max } })],
  ['templates.t.vmid', 100, 999_999_999, withTemplate],
  ['machineTypes.m.cores', 1, 8192, (cores) => withSize({ cores })],
  ['machineTypes.m.memoryMiB', 1, 64 * 1024 ** 2, (memoryMiB) => withSize({ memoryMiB })],
  ['machineTypes.m.diskGiB', 1, 1024 ** 2, (diskGiB) => withSize({ diskGiB })],
  ['requestTimeoutSeconds', 1, 3600, (requestTimeoutSeconds) => ({ requestTimeoutSeconds })],
  ['maxClones', 1, 100, (maxClones) => ({ maxClones })],
  ['maxDestroys', 1, 100, (maxDestroys) => ({ maxDestroys })],
  ['gc.graceMinutes', 0, 10_080, (graceMinutes) => ({ gc: { graceMinutes } })],
];

describe('the proxmox block', () => {
  it('takes the required fields alone', () => {
    assert.deepEqual(problemsOf(required), []);
  });

  for (const field of Object.keys(required)) {
    it(`needs ${field}`, () => {
      const { [field]: _left, ...others } = required;
      const problems = problemsOf(others);
      assert.equal(problems.length, 1);
      assert.match(problems[0] ?? '', new RegExp(`^${field}: is required`));
    });
  }

  for (const [field, low, high, block] of bounds) {
    it(`takes ${field} from ${low} to ${high}, and refuses one less and one more`, () => {
      for (const value of [low, high]) {
        assert.deepEqual(problemsOf({ ...required, ...block(value) }), [], String(value));
      }
      for (const value of [low - 1, high + 1, low + 0.5]) {
        const [problem, ...others] = problemsOf({ ...required, ...block(value) });
        assert.deepEqual(others, [], String(value));
        const owner = field.startsWith('vmidRange') ? 'vmidRange' : field;
        assert.ok(problem?.startsWith(owner), `${value}: ${problem ?? 'accepted'}`);
      }
    });
  }

  it('takes a range of VMIDs only when its lowest is below its highest', () => {
    for (const [min, max] of [
      [200, 200],
      [201, 200],
    ] as const) {
      // prettier-ignore
      assert.deepEqual(problemsOf({ ...required, vmidRange: { min, max } }), [
        'vmidRange.min: must be below max',
      ]);
    }
    assert.deepEqual(load({ ...required, vmidRange: { min: 200, max: 201 } }).vmidRange, {
      min: 200,
      max: 201,
    });
  });

  const urls: [url: string, accepted: string | null][] = [
    ['https://192.168.0.8:8006', 'https://192.168.0.8:8006'],
    ['https://192.168.0.8:8006/', 'https://192.168.0.8:8006'],
    ['https://pv1-1.home.lab:8006', 'https://pv1-1.home.lab:8006'],
    ['https://[2001:db8::8]:8006', 'https://[2001:db8::8]:8006'],
    ['https://192.168.0.8:8006/api2/json', null],
    ['http://192.168.0.8:8006', null],
    ['192.168.0.8:8006', null],
    ['https://user:secret@192.168.0.8:8006', null],
    ['https://192.168.0.8:8006?x=1', null],
    ['', null],
  ];
  for (const [url, accepted] of urls) {
    it(`${accepted === null ? 'refuses' : 'takes'} the url «${url}»`, () => {
      if (accepted !== null) return assert.equal(load({ ...required, url }).url, accepted);
      const [problem, ...others] = problemsOf({ ...required, url });
      assert.deepEqual(
        [problem?.startsWith('url: must be https://<host>:8006'), others],
        [true, []],
      );
    });
  }

  for (const node of ['pv1-1', 'a', '1', 'n'.repeat(63)]) {
    it(`takes the node ${node}`, () => {
      assert.deepEqual(load({ ...required, nodes: [node] }).nodes, [node]);
    });
  }
  for (const node of [
    'PV1',
    'pv_1',
    'pv1.home',
    '192.168.0.8',
    '-a',
    'a-',
    '',
    'a/b',
    '../x',
    'n'.repeat(64),
  ]) {
    // prettier-ignore
    it(`refuses the node «${node}», which would end up in paths and as a target`, () => {
      assert.match(problemsOf({ ...required, nodes: [node] }).join(), /^nodes\[0\]: must be a node/);
    });
  }

  it('refuses no node, and the same node twice', () => {
    assert.match(problemsOf({ ...required, nodes: [] }).join(), /^nodes: /);
    assert.deepEqual(problemsOf({ ...required, nodes: ['a', 'a'] }), [
      'nodes[1]: must be unique; nodes[0] is the same node',
    ]);
  });

  it('refuses catalogues that are empty', () => {
    assert.deepEqual(problemsOf({ ...required, templates: {} }), [
      'templates: must hold at least one template',
    ]);
    assert.deepEqual(problemsOf({ ...required, machineTypes: {} }), [
      'machineTypes: must hold at least one machine type',
    ]);
  });

  it('refuses a key it does not know, at every level', () => {
    const blocks: Block[] = [
      { colour: 1 },
      { vmidRange: { colour: 1 } },
      { templates: { t: { vmid: 9001, colour: 1 } } },
      { machineTypes: { m: { ...small, colour: 1 } } },
      { address: { colour: 1 } },
      { gc: { colour: 1 } },
    ];
    for (const block of blocks) {
      assert.match(problemsOf({ ...required, ...block }).join(), /colour: is not a known key/);
    }
  });
});
