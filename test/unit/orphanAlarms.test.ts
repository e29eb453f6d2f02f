import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { emptyReport, isMass, unservedOf } from '../../workflows/orphanRound.ts';
import { minute, start, orphan, round, rounds, gone } from '../support/orphanRounds.ts';

describe('many orphans at once', () => {
  const table: [number, number, boolean][] = [
    [1, 1, false],
    [1, 20, false],
    [2, 2, true],
    [2, 3, true],
    [2, 19, true],
    [2, 20, false],
    [3, 20, true],
    [10, 100, false],
    [11, 100, true],
  ];
  for (const [orphans, managed, mass] of table) {
    it(`${orphans} of ${managed} are ${mass ? '' : 'not '}too many`, () => {
      assert.equal(isMass(orphans, managed), mass);
    });
  }

  const three = [101, 102, 103].map((vmid) => orphan(vmid));

  it('raise an alarm, and none of them is removed however long it lasts', () => {
    const judged = rounds({ atMinute: 0, orphans: three }, { atMinute: 600, orphans: three });
    assert.deepEqual(gone(judged), []);
    const { alarm } = judged.report;
    assert.equal(alarm?.kind, 'MassAbsence');
    assert.equal(alarm?.id, 'orphans-20261129T193000Z');
    assert.deepEqual(alarm?.vmids, [101, 102, 103]);
  });

  it('also when they came one by one within the grace', () => {
    const judged = rounds(
      { atMinute: 0, orphans: three.slice(0, 1) },
      { atMinute: 10, orphans: three.slice(0, 2) },
      { atMinute: 20, orphans: three },
      { atMinute: 55, orphans: three },
    );
    assert.deepEqual(gone(judged), []);
    assert.equal(judged.report.alarm?.id, 'orphans-20261129T195000Z');
  });

  it('are removed once the config names the alarm', () => {
    const held = rounds({ atMinute: 0, orphans: three }, { atMinute: 40, orphans: three });
    const confirmAbsence = held.report.alarm?.id ?? '';
    const confirmed = round(held.report, { atMinute: 45, orphans: three, settings: { confirmAbsence } }); // prettier-ignore
    assert.equal(confirmed.report.alarm, null);
    assert.deepEqual(gone(confirmed), [101, 102, 103]);
    // The id may stay in the config, or go: what was confirmed stays so.
    assert.deepEqual(gone(round(confirmed.report, { atMinute: 50, orphans: three })), [101, 102, 103]); // prettier-ignore
  });

  it('are not removed by the id of another alarm', () => {
    const judged = rounds(
      { atMinute: 0, orphans: three },
      { atMinute: 40, orphans: three, settings: { confirmAbsence: 'orphans-20250101T000000Z' } },
    );
    assert.deepEqual(gone(judged), []);
  });

  it('get another id when more join them, so that nobody confirms what he has not seen', () => {
    const held = rounds({ atMinute: 0, orphans: three });
    const id = held.report.alarm?.id ?? '';
    const more = [...three, orphan(104)];
    const joined = round(held.report, { atMinute: 40, orphans: more });
    assert.notEqual(joined.report.alarm?.id, id);
    const late = { atMinute: 45, orphans: more, settings: { confirmAbsence: id } };
    assert.deepEqual(gone(round(joined.report, late)), []);
  });

  it('stay held when only some of their Proxies came back, and are over with the last', () => {
    const held = rounds({ atMinute: 0, orphans: three });
    const one = round(held.report, { atMinute: 40, orphans: three.slice(0, 1) });
    assert.deepEqual(gone(one), []);
    assert.equal(one.report.alarm?.id, held.report.alarm?.id);
    assert.equal(round(one.report, { atMinute: 45 }).report.alarm, null);
  });

  it('do not count what is kept anyway', () => {
    const kept = [101, 102, 103].map((vmid) => orphan(vmid, { kept: 'retained' }));
    const all = [...kept, orphan(104)];
    const judged = rounds({ atMinute: 0, orphans: all }, { atMinute: 40, orphans: all });
    assert.deepEqual(gone(judged), [104]);
  });

  it('are not fewer beside those that a person has spoken about', () => {
    const first = Array.from({ length: 27 }, (_, index) => orphan(101 + index));
    const held = rounds({ atMinute: 0, orphans: first, managed: 30 });
    const confirmAbsence = held.report.alarm?.id ?? '';
    const inForce = { settings: { confirmAbsence }, managed: 30 };
    const confirmed = round(held.report, { atMinute: 5, orphans: first, ...inForce });
    assert.equal(confirmed.report.alarm, null);
    const all = [...first, ...[201, 202, 203].map((vmid) => orphan(vmid))];
    const more = round(confirmed.report, { atMinute: 10, orphans: all, ...inForce });
    assert.deepEqual(more.report.alarm?.vmids, [201, 202, 203]);
    assert.match(more.report.alarm?.message ?? '', /^3 of 3 VMs/);
  });
});

describe('a Kubernetes that went back in time', () => {
  const orphans = [orphan(101)];

  it('raises an alarm that stands until it is confirmed, also when its versions have caught up', () => {
    const back = rounds(
      { atMinute: 0, orphans, version: '1000' },
      { atMinute: 40, orphans, version: '900' },
    );
    assert.deepEqual(gone(back), []);
    assert.equal(back.report.alarm?.kind, 'ClusterRolledBack');
    const later = round(back.report, { atMinute: 600, orphans, version: '2000' });
    assert.deepEqual(gone(later), []);
    const confirmAbsence = later.report.alarm?.id ?? '';
    const confirmed = round(later.report, { atMinute: 605, orphans, version: '2001', settings: { confirmAbsence } }); // prettier-ignore
    assert.equal(confirmed.report.alarm, null);
    assert.deepEqual(gone(confirmed), [101]);
  });

  it('is believed after the confirmation, with the versions it has now', () => {
    const back = rounds({ atMinute: 0, version: '1000' }, { atMinute: 5, version: '900' });
    const confirmAbsence = back.report.alarm?.id ?? '';
    const confirmed = round(back.report, { atMinute: 10, version: '910', settings: { confirmAbsence } }); // prettier-ignore
    assert.equal(confirmed.report.newestVersion, '910');
    assert.equal(round(confirmed.report, { atMinute: 15, version: '920' }).report.alarm, null);
  });

  it('is told by numbers, not by letters', () => {
    assert.equal(rounds({ atMinute: 0, version: '999' }, { atMinute: 5, version: '1000' }).report.alarm, null); // prettier-ignore
  });
});

describe('an alarm that is shown', () => {
  const orphans = [orphan(101)];

  it('holds up a collection whose Schedule was deleted, until it is confirmed', () => {
    const shownAlarm = 'rollback-20261129T190000Z';
    const held = rounds(
      { atMinute: 0, orphans, shownAlarm },
      { atMinute: 40, orphans, version: '2000' },
    );
    assert.deepEqual(gone(held), []);
    assert.equal(held.report.alarm?.id, shownAlarm);
    const settled = { confirmAbsence: shownAlarm };
    assert.deepEqual(gone(round(held.report, { atMinute: 45, orphans, version: '2001', settings: settled })), [101]); // prettier-ignore
  });

  it('is raised anew over the orphans there are when it was about VMs, and over when there are none', () => {
    const shownAlarm = 'orphans-20261129T190000Z';
    const held = rounds({ atMinute: 0, orphans, shownAlarm }, { atMinute: 40, orphans });
    assert.deepEqual([gone(held), held.report.alarm?.vmids], [[], [101]]);
    assert.equal(rounds({ atMinute: 0, shownAlarm }).report.alarm, null);
  });

  it('says nothing to a round that remembers', () => {
    const judged = rounds({ atMinute: 0 }, { atMinute: 5, shownAlarm: 'rollback-1' });
    assert.equal(judged.report.alarm, null);
  });
});

describe('a provider that nobody serves', () => {
  const report = emptyReport('pve', start);
  const unserved = 'ProviderNotServed';

  it('lets its Schedule rest after ten minutes, which count anew when it wakes', () => {
    const first = unservedOf(report, unserved, start);
    assert.deepEqual(first, { unservedSinceMs: start, ended: false });
    const since = { ...report, unservedSinceMs: start };
    assert.equal(unservedOf(since, unserved, start + 9 * minute).ended, false);
    const last = unservedOf(since, unserved, start + 10 * minute);
    assert.deepEqual(last, { unservedSinceMs: null, ended: true });
  });

  it('is another thing than one that does not answer', () => {
    const since = { ...report, unservedSinceMs: start };
    const answer = unservedOf(since, 'Unreachable', start + 10 * minute);
    assert.deepEqual(answer, { unservedSinceMs: null, ended: false });
  });
});
