import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NodeRow } from '../../../activities/proxmox/api.ts';
import { MassAbsence } from '../../../activities/watch/massAbsence.ts';
import { watchedVms, type WatchedVm } from '../../../activities/watch/watched.ts';
import { aRow, aWatchedProxy, twoNodes } from '../../support/aWatchedProxy.ts';

function watched(count: number): WatchedVm[] {
  const proxies = Array.from({ length: count }, (_, n) => aWatchedProxy(n + 1));
  return watchedVms(proxies, 'pve');
}

/** One round in which the VMs with these numbers are missing. */
function round(
  absence: MassAbsence,
  count: number,
  missing: number[],
  nodes: NodeRow[] = twoNodes,
  atMs = Date.parse('2026-11-29T20:00:00Z'),
): MassAbsence {
  const rows = Array.from({ length: count }, (_, n) => n + 1)
    .filter((n) => !missing.includes(n))
    .map((n) => aRow(n));
  absence.take(watched(count), { rows, nodes }, atMs);
  return absence;
}
const fresh = (): MassAbsence => new MassAbsence('pve', null);

describe('MassAbsence', () => {
  const table: [title: string, count: number, missing: number, raised: boolean][] = [
    ['the only VM', 1, 1, false],
    ['one of two', 2, 1, false],
    ['both of two', 2, 2, true],
    ['one of nine', 9, 1, false],
    ['two of nine', 9, 2, true],
    ['two of twenty, a tenth', 20, 2, false],
    ['three of twenty', 20, 3, true],
    ['all of a hundred', 100, 100, true],
  ];
  for (const [title, count, missing, raised] of table) {
    it(`is ${raised ? '' : 'not '}raised when ${title} vanish in one round`, () => {
      const gone = Array.from({ length: missing }, (_, n) => n + 1);
      assert.equal(round(fresh(), count, gone).alarm() !== null, raised);
    });
  }

  it('is raised for a single VM when no known node is in the cluster', () => {
    const others: NodeRow[] = [{ node: 'elsewhere', status: 'online' }];
    assert.match(round(fresh(), 1, [1], others).alarm()?.message ?? '', /another cluster/);
  });

  it('counts those that vanish in one round, not those that vanished one by one', () => {
    const absence = fresh();
    for (const gone of [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]) round(absence, 9, gone);
    assert.equal(absence.alarm(), null);
  });

  it('names what is missing, and keeps its id from round to round', () => {
    const absence = round(fresh(), 3, [2, 3]);
    const alarm = absence.alarm();
    assert.deepEqual(alarm?.vmids, [100_002, 100_003]);
    assert.match(alarm?.id ?? '', /^[0-9a-f]{8}$/);
    assert.equal(round(absence, 3, [2, 3], twoNodes, Date.now()).alarm()?.id, alarm?.id);
    assert.equal(new MassAbsence('pve', alarm ?? null).alarm()?.id, alarm?.id);
  });

  it('stands while one of its VMs is missing, and ends when all are back', () => {
    const absence = round(fresh(), 3, [1, 2, 3]);
    assert.notEqual(round(absence, 3, [3]).alarm(), null);
    assert.equal(round(absence, 3, []).alarm(), null);
  });

  it('is not raised anew by an attempt that knows it from before', () => {
    const alarm = round(fresh(), 3, [1, 2, 3]).alarm();
    const after = round(new MassAbsence('pve', alarm), 3, [1, 2, 3], twoNodes, Date.now());
    assert.equal(after.alarm()?.id, alarm?.id);
  });

  it('is raised anew, with another id, when as many again vanish', () => {
    const absence = round(fresh(), 9, [1, 2]);
    const first = absence.alarm()?.id;
    round(absence, 9, [1, 2, 3, 4], twoNodes, Date.parse('2026-11-29T20:01:00Z'));
    assert.notEqual(absence.alarm()?.id, first);
    assert.equal(absence.alarm()?.vmids.length, 4);
  });
});
