import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Census, CollectionReport } from '../../workflows/contract/collection.ts';
import { collected, newsOf } from '../../workflows/orphanEvents.ts';
import {
  dueSeeds,
  emptyReport,
  knownVmids,
  mayClear,
  remembered,
  seedKey,
} from '../../workflows/orphanRound.ts';
import {
  minute,
  start,
  settings,
  orphan,
  seed,
  round,
  rounds,
  gone,
} from '../support/orphanRounds.ts';

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
