import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  Census,
  CollectionReport,
  CollectionSettings,
  OrphanSeed,
  OrphanVm,
} from '../../workflows/contract/collection.ts';
import { collected, newsOf } from '../../workflows/orphanEvents.ts';
import {
  dueSeeds,
  emptyReport,
  isMass,
  judge,
  knownVmids,
  mayClear,
  remembered,
  seedKey,
  unservedOf,
  type Judgement,
} from '../../workflows/orphans.ts';

const minute = 60_000;
const start = Date.UTC(2026, 10, 29, 19, 30);
const settings: CollectionSettings = {
  mode: 'delete',
  graceMs: 30 * minute,
  confirmAbsence: null,
  requestBoundMs: 30_000,
};

function orphan(vmid: number, changes: Partial<OrphanVm> = {}): OrphanVm {
  const uid = `${String(vmid).padStart(8, '0')}-1111-4111-8111-111111111111`;
  return {
    vmid,
    node: 'pve1',
    name: `proxy-p${vmid}-abcdef-${uid.slice(0, 8)}-000000`,
    owner: { namespace: 'egress', name: `p${vmid}`, uid },
    kept: null,
    ...changes,
  };
}

function seed(name: string, changes: Partial<OrphanSeed> = {}): OrphanSeed {
  const vmName = `proxy-${name}-abcdef-11111111-000000`;
  return {
    node: 'pve1',
    storage: 'proxy-seeds',
    file: `${vmName}-seed.iso`,
    vmName,
    uidPrefix: '11111111',
    heldBy: null,
    examined: true,
    ...changes,
  };
}

interface Round {
  atMinute: number;
  orphans?: OrphanVm[];
  managed?: number;
  seeds?: OrphanSeed[];
  version?: string;
  settings?: Partial<CollectionSettings>;
  alarm?: string | null;
  shownAlarm?: string | null;
}

function round(before: CollectionReport, fields: Round): Judgement {
  const inForce = { ...settings, ...fields.settings };
  const census: Census = {
    settings: inForce,
    managed: fields.managed ?? 20,
    orphans: fields.orphans ?? [],
    leftovers: [],
    listVersion: fields.version ?? '1000',
    alarm: fields.alarm ?? null,
    shownAlarm: fields.shownAlarm ?? null,
  };
  const seeds = { settings: inForce, orphans: fields.seeds ?? [], silentNodes: [] };
  return judge(before, { census, seeds }, start + fields.atMinute * minute);
}

/** Rounds one after the other, each remembering the one before. */
function rounds(...all: Round[]): Judgement {
  const [first, ...others] = all;
  assert.ok(first);
  let last = round(emptyReport('pve', start), first);
  for (const next of others) last = round(last.report, next);
  return last;
}

const gone = (judged: Judgement): number[] => judged.vms.map(({ vmid }) => vmid);

describe('an orphan VM', () => {
  const orphans = [orphan(101)];

  it('is removed when it was seen twice and its grace is over', () => {
    const waiting = rounds({ atMinute: 0, orphans }, { atMinute: 29, orphans });
    assert.deepEqual(gone(waiting), []);
    assert.match(waiting.report.vms[0]?.outlook ?? '', /removed after 2026-11-29T20:00:00/);
    assert.deepEqual(gone(round(waiting.report, { atMinute: 30, orphans })), [101]);
  });

  it('is not removed at first sight, however short the grace', () => {
    const short = { graceMs: 0 };
    const first = rounds({ atMinute: 0, orphans, settings: short });
    assert.deepEqual(gone(first), []);
    assert.deepEqual(gone(round(first.report, { atMinute: 1, orphans, settings: short })), [101]);
  });

  it('begins anew when a round did not see it', () => {
    const judged = rounds(
      { atMinute: 0, orphans },
      { atMinute: 20 },
      { atMinute: 40, orphans },
      { atMinute: 60, orphans },
    );
    assert.deepEqual(gone(judged), []);
  });

  it('begins anew when another VM has its VMID', () => {
    const other = [orphan(101, { name: 'proxy-p9-abcdef-00000101-999999' })];
    assert.deepEqual(gone(rounds({ atMinute: 0, orphans }, { atMinute: 40, orphans: other })), []);
    const owner = { namespace: 'egress', name: 'p9', uid: orphan(102).owner.uid };
    const twin = [orphan(101, { owner })];
    assert.deepEqual(gone(rounds({ atMinute: 0, orphans }, { atMinute: 40, orphans: twin })), []);
  });

  it('is kept for as long as something speaks for it', () => {
    const kept = [orphan(101, { kept: 'its mark says that it is retained' })];
    const judged = rounds({ atMinute: 0, orphans: kept }, { atMinute: 40, orphans: kept });
    assert.deepEqual(gone(judged), []);
    assert.equal(judged.report.vms[0]?.outlook, 'is kept: its mark says that it is retained');
  });

  it('is only reported in report mode', () => {
    const report = { mode: 'report' } as const;
    const judged = rounds(
      { atMinute: 0, orphans, settings: report },
      { atMinute: 40, orphans, settings: report },
    );
    assert.deepEqual(gone(judged), []);
    assert.match(judged.report.vms[0]?.outlook ?? '', /gc\.mode: report/);
  });

  it('is held while an alarm of the observation stands', () => {
    const judged = rounds({ atMinute: 0, orphans }, { atMinute: 40, orphans, alarm: 'absent-1' });
    assert.deepEqual(gone(judged), []);
    assert.equal(judged.report.vms[0]?.outlook, 'is held by alarm absent-1');
  });
});

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

describe('an orphan seed', () => {
  const seeds = [seed('a')];

  it('is deleted after the grace when it was examined and nothing needs it', () => {
    const judged = rounds({ atMinute: 0, seeds }, { atMinute: 40, seeds });
    assert.deepEqual(judged.seeds.map(({ file }) => file), [seeds[0]?.file]); // prettier-ignore
  });

  it('is not deleted unexamined', () => {
    const unexamined = [seed('a', { examined: false })];
    const judged = rounds({ atMinute: 0, seeds: unexamined }, { atMinute: 40, seeds: unexamined });
    assert.deepEqual(judged.seeds, []);
  });

  it('is kept while something may need it', () => {
    const held = [seed('a', { heldBy: 'VM 300 on pve1 names it' })];
    const judged = rounds({ atMinute: 0, seeds: held }, { atMinute: 40, seeds: held });
    assert.deepEqual(judged.seeds, []);
  });

  it('is held by an alarm about VMs', () => {
    const orphans = [orphan(101), orphan(102)];
    const all = { seeds, orphans, managed: 2 };
    assert.deepEqual(rounds({ atMinute: 0, ...all }, { atMinute: 40, ...all }).seeds, []);
  });

  it('is examined from the round on in which its grace is over', () => {
    const { report } = rounds({ atMinute: 0, seeds });
    assert.deepEqual(dueSeeds(report, start + 29 * minute), []);
    assert.deepEqual(dueSeeds(report, start + 30 * minute), [`pve1 ${seeds[0]?.file}`]);
  });

  it('is examined in its turn, also when twenty before it are held for ever', () => {
    const many = Array.from({ length: 25 }, (_, index) => seed(`s${index}`));
    let { report } = rounds({
      atMinute: 0,
      seeds: many.map((one) => ({ ...one, examined: false })),
    });
    const examined = new Set<string>();
    for (const atMinute of [40, 45]) {
      const due = dueSeeds(report, start + atMinute * minute);
      assert.equal(due.length, 20);
      for (const key of due) examined.add(key);
      const looked = many.map((one) => {
        const asked = due.includes(seedKey(one));
        return { ...one, examined: asked, heldBy: asked ? 'VM 300 on pve1 names it' : null };
      });
      report = round(report, { atMinute, seeds: looked }).report;
    }
    assert.equal(examined.size, 25);
  });

  it('on two nodes is two seeds', () => {
    const both = [seed('a'), seed('a', { node: 'pve2' })];
    const judged = rounds({ atMinute: 0, seeds }, { atMinute: 40, seeds: both });
    assert.deepEqual(judged.seeds.map(({ node }) => node), ['pve1']); // prettier-ignore
  });
});

describe('what the rounds remember', () => {
  it('is nothing without a round before, and nothing of another provider', () => {
    const { report } = rounds({ atMinute: 0, orphans: [orphan(101)] });
    assert.equal(remembered(undefined, 'pve', start).vms.length, 0);
    assert.equal(remembered(report, 'other', start).vms.length, 0);
    assert.equal(remembered(report, 'pve', start).vms.length, 1);
  });

  it('names the VMIDs of a UID for the seeds that may belong to them', () => {
    const { report } = rounds({ atMinute: 0, orphans: [orphan(101)] });
    assert.deepEqual(knownVmids(report), { '00000101': [101] });
  });

  it('lets leftovers be removed only when nothing holds the collection up', () => {
    const census: Census = { settings, managed: 0, orphans: [], leftovers: [], listVersion: '1', alarm: null }; // prettier-ignore
    const { report } = rounds({ atMinute: 0 });
    assert.equal(mayClear(report, census), true);
    assert.equal(mayClear(report, { ...census, alarm: 'absent-1' }), false);
    assert.equal(mayClear({ ...report, mode: 'report' }, census), false);
  });
});

describe('what a round tells', () => {
  const reasonsOf = (before: CollectionReport, now: CollectionReport): string[] =>
    newsOf(before, now).map(({ reason }) => reason);

  it('is each orphan once', () => {
    const before = emptyReport('pve', start);
    const first = round(before, { atMinute: 0, orphans: [orphan(101)], seeds: [seed('a')] });
    assert.deepEqual(reasonsOf(before, first.report), ['OrphanFound', 'OrphanFound']);
    const second = round(first.report, { atMinute: 5, orphans: [orphan(101)], seeds: [seed('a')] });
    assert.deepEqual(reasonsOf(first.report, second.report), []);
  });

  it('is an alarm with the line that confirms it, and its end', () => {
    const three = [101, 102, 103].map((vmid) => orphan(vmid));
    const before = emptyReport('pve', start);
    const { report } = round(before, { atMinute: 0, orphans: three });
    const [held] = newsOf(before, report);
    assert.equal(held?.reason, 'CollectionHeld');
    assert.match(held?.message ?? '', /confirmAbsence: orphans-20261129T193000Z/);
    assert.deepEqual(reasonsOf(report, round(report, { atMinute: 5 }).report), ['CollectionResumed']); // prettier-ignore
  });

  it('is no flood', () => {
    const many = Array.from({ length: 40 }, (_, index) => `VM ${index}`);
    const events = collected(many);
    assert.equal(events.length, 11);
    assert.equal(events.at(-1)?.message, 'and 30 more');
  });
});
