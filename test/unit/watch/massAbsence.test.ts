import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NodeRow } from '../../../activities/proxmox/api.ts';
import { MassAbsence } from '../../../activities/watch/massAbsence.ts';
import { leavingVms, watchedVms, type WatchedVm } from '../../../activities/watch/watched.ts';
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
  const vms = { watched: watched(count), leaving: [] };
  absence.take(vms, { rows, nodes }, { nowMs: atMs, confirmed: null });
  return absence;
}
/** One round in which every Proxy is being deleted and these of their VMs are listed. */
function leavingRound(
  absence: MassAbsence,
  count: number,
  listed: number[],
  nodes: NodeRow[] = twoNodes,
  confirmed: string | null = null,
): MassAbsence {
  const proxies = Array.from({ length: count }, (_, n) =>
    aWatchedProxy(n + 1, { phase: 'Deleting' }),
  );
  const vms = { watched: watchedVms(proxies, 'pve'), leaving: leavingVms(proxies, 'pve') };
  const rows = listed.map((n) => aRow(n));
  absence.take(vms, { rows, nodes }, { nowMs: Date.parse('2026-11-29T20:02:00Z'), confirmed });
  return absence;
}
const elsewhere: NodeRow[] = [{ node: 'elsewhere', status: 'online' }];
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
    assert.match(round(fresh(), 1, [1], elsewhere).alarm()?.message ?? '', /another cluster/);
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

  it('stands while its VMs are not listed, also when their Proxies are deleted or gone', () => {
    const absence = round(fresh(), 3, [2, 3]);
    assert.notEqual(leavingRound(absence, 3, [1]).alarm(), null);
    assert.notEqual(leavingRound(absence, 0, [1]).alarm(), null);
    assert.equal(leavingRound(absence, 0, [2, 3]).alarm(), null);
  });

  it('ends when it is confirmed and no Proxy has a missing VM of it any more', () => {
    const absence = round(fresh(), 3, [2, 3]);
    const id = absence.alarm()?.id ?? null;
    assert.equal(leavingRound(absence, 0, [1], twoNodes, id).alarm(), null);
  });

  it('is not raised when VMs vanish whose Proxies are being deleted', () => {
    assert.equal(leavingRound(leavingRound(fresh(), 3, [1, 2, 3]), 3, []).alarm(), null);
  });

  it('that says nothing of its VMIDs ends only when it is confirmed', () => {
    const absence = new MassAbsence('pve', { id: 'x', since: '', message: '', vmids: [] });
    assert.notEqual(round(absence, 3, []).alarm(), null);
    assert.equal(leavingRound(absence, 0, [], twoNodes, 'x').alarm(), null);
  });

  it('is raised for Proxies under deletion when no known node is in the cluster', () => {
    const absence = leavingRound(fresh(), 2, [], elsewhere);
    assert.deepEqual(absence.alarm()?.vmids, [100_001, 100_002]);
  });

  it('does not end because another cluster has VMs with the same VMIDs', () => {
    const absence = round(fresh(), 2, [1, 2], elsewhere);
    assert.notEqual(round(absence, 2, [], elsewhere).alarm(), null);
  });

  it('raised anew still names what an earlier one was raised for', () => {
    const absence = round(fresh(), 9, [1, 2]);
    const vms = { watched: watched(9).slice(2), leaving: [] };
    const rows = [3, 4, 7, 8, 9].map((n) => aRow(n));
    absence.take(vms, { rows, nodes: twoNodes }, { nowMs: Date.now(), confirmed: null });
    assert.deepEqual(absence.alarm()?.vmids, [100_001, 100_002, 100_005, 100_006]);
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
