import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NodeRow, VmRow } from '../../../activities/proxmox/api.ts';
import { Differences, differenceOf } from '../../../activities/watch/differences.ts';
import { watchedVms, type WatchedVm } from '../../../activities/watch/watched.ts';
import { aRow, aWatchedProxy, twoNodes, type WatchedFields } from '../../support/aWatchedProxy.ts';

function watched(fields: WatchedFields = {}): WatchedVm {
  const [vm] = watchedVms([aWatchedProxy(1, fields)], 'pve');
  assert.ok(vm);
  return vm;
}

function difference(
  row: VmRow | undefined,
  fields: WatchedFields = {},
  nodes: NodeRow[] = twoNodes,
): string | null {
  return differenceOf(
    watched(fields),
    row,
    new Map(nodes.map(({ node, status }) => [node, status])),
  );
}

describe('what a row says against a status', () => {
  const table: [string, VmRow | undefined, WatchedFields, string | null][] = [
    ['a VM as it should be', aRow(1), {}, null],
    ['a missing row', undefined, {}, 'gone'],
    ['a stopped VM', aRow(1, { status: 'stopped' }), {}, 'stopped'],
    [
      'a stopped VM whose status says so',
      aRow(1, { status: 'stopped' }),
      { power: 'stopped' },
      null,
    ],
    ['a VM that runs although the status says stopped', aRow(1), { power: 'stopped' }, 'running'],
    ['a status from before powers were shown', aRow(1), { power: null }, null],
    ['a paused VM', aRow(1, { status: 'paused' }), {}, 'paused'],
    ['a hibernated VM', aRow(1, { status: 'stopped', lock: 'suspended' }), {}, 'hibernated'],
    ['an I/O error', aRow(1, { status: 'io-error' }), {}, 'io-error'],
    ['a VM that QEMU prepares', aRow(1, { status: 'prelaunch' }), {}, null],
    ['a VM that a backup has paused', aRow(1, { status: 'paused', lock: 'backup' }), {}, null],
    ['a row without statistics', aRow(1, { status: 'unknown' }), {}, null],
    ['another node', aRow(1, { node: 'pve2' }), {}, 'on pve2'],
    ['a wiped tag', aRow(1, { tags: 'web' }), {}, 'untagged'],
    ['a tag beside others', aRow(1, { tags: 'a;proxy_operator;z' }), {}, null],
    ['another name', aRow(1, { name: 'web' }), {}, 'another VM (web)'],
    ['the name of a row that has none', aRow(1, { name: 'VM 100001' }), {}, null],
    ['a template', aRow(1, { template: true }), {}, 'another VM (vm-1)'],
    ['a container', aRow(1, { type: 'lxc' }), {}, 'another VM (vm-1)'],
  ];
  for (const [title, row, fields, expected] of table) {
    it(`${title}: ${expected ?? 'nothing to tell'}`, () => {
      assert.equal(difference(row, fields), expected);
    });
  }

  it('a row without name and template flag says nothing about them', () => {
    const { name: _name, template: _template, ...rest } = aRow(1);
    assert.equal(difference(rest), null);
  });

  it('asks the node first, because rows of a dead one read running', () => {
    const dead: NodeRow[] = [{ node: 'pve1', status: 'offline' }];
    assert.equal(difference(aRow(1), {}, dead), 'unreachable');
    assert.equal(difference(aRow(1), { power: 'unreachable' }, dead), null);
    assert.equal(difference(aRow(1), { power: 'unreachable' }), 'running');
    assert.equal(difference(aRow(1), {}, [{ node: 'pve1', status: 'unknown' }]), null);
  });
});

describe('which Proxies are told', () => {
  const vm = watched();
  const round = (differences: Differences, row: VmRow, atMs: number, one = vm): number =>
    differences.take([one], { rows: [row], nodes: twoNodes }, atMs).length;
  const stopped = aRow(1, { status: 'stopped' });

  it('those whose VM differs in two rounds, once', () => {
    const differences = new Differences();
    const told = [0, 10_000, 20_000, 30_000].map((ms) => round(differences, stopped, ms));
    assert.deepEqual(told, [0, 1, 0, 0]);
  });

  it('nobody because of a row that went back and forth', () => {
    const differences = new Differences();
    const rows = [stopped, aRow(1), stopped, aRow(1), stopped];
    assert.deepEqual(
      rows.map((row, index) => round(differences, row, index * 10_000)),
      [0, 0, 0, 0, 0],
    );
  });

  it('anew when the difference is another one', () => {
    const differences = new Differences();
    const moved = aRow(1, { node: 'pve2' });
    const rows = [stopped, stopped, moved, moved];
    assert.deepEqual(
      rows.map((row, index) => round(differences, row, index * 10_000)),
      [0, 1, 0, 1],
    );
  });

  it('again after five minutes while the status shows no effect, then ever more rarely', () => {
    const differences = new Differences();
    const minutes = [0, 1, 5, 6, 10, 15, 16, 35, 36].filter(
      (minute) => round(differences, stopped, minute * 60_000) === 1,
    );
    assert.deepEqual(minutes, [1, 6, 16, 36]);
  });

  it('again in the next round when the telling failed', () => {
    const differences = new Differences();
    round(differences, stopped, 0);
    assert.equal(round(differences, stopped, 10_000), 1);
    differences.untold(vm);
    assert.equal(round(differences, stopped, 20_000), 1);
  });

  it('nobody after a restart where the status knows already', () => {
    const known = watched({ power: 'stopped' });
    const differences = new Differences();
    assert.deepEqual(
      [0, 1].map((n) => round(differences, stopped, n * 10_000, known)),
      [0, 0],
    );
  });
});

describe('which VMs are watched', () => {
  it('those with an address, on this provider, of Proxies that are not being deleted', () => {
    const proxies = [
      aWatchedProxy(1),
      aWatchedProxy(2, { provider: 'other' }),
      aWatchedProxy(3, { phase: 'Deleting' }),
      aWatchedProxy(4, { status: { ip: null } }),
      aWatchedProxy(5, {
        replacement: {
          vmid: 100_105,
          node: 'pve2',
          vmName: 'vm-new',
          ip: '192.0.2.99',
          specHash: 'b',
        },
      }),
      aWatchedProxy(6, {
        replacement: { vmid: 100_106, node: 'pve2', vmName: 'vm-new', specHash: 'b' },
      }),
    ];
    assert.deepEqual(
      watchedVms(proxies, 'pve').map(({ vmid, role }) => `${vmid} ${role}`),
      ['100001 serving', '100005 serving', '100105 replacement', '100006 serving'],
    );
  });
});
