/** The Schedule of the collection and its rounds. The time-skipping server knows no Schedules, so all is in real time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { ensureCollection, orphanSender, restCollection } from '../../worker/collections.ts';
import type { CollectionReport } from '../../workflows/contract/collection.ts';
import { proxyWorkflowId } from '../../workflows/contract/messages.ts';
import { CollectWorld, lostOwner, lostSeed, lostVm } from '../support/collectWorld.ts';
import { eventually } from '../support/eventually.ts';
import { FakeWorld } from '../support/fakeWorld.ts';
import { onServer, useWorkflowServer } from '../support/workflowHarness.ts';
import type { TestWorkflowEnvironment } from '@temporalio/testing';

interface Rounds {
  server: TestWorkflowEnvironment;
  /** Triggers a round and waits for its report. */
  round: () => Promise<CollectionReport>;
}

/** A Schedule with its rounds; the first is not due for minutes, so a round is one that was triggered. */
async function withSchedule(
  world: CollectWorld,
  tell: (rounds: Rounds) => Promise<void>,
): Promise<void> {
  await onServer(world.steps(), { realTime: true }, async (server) => {
    const { client } = server;
    await ensureCollection(client, 'pve');
    const schedule = client.schedule.getHandle('gc-pve');
    let rounds = 0;
    const round = async (): Promise<CollectionReport> => {
      await schedule.trigger(ScheduleOverlapPolicy.SKIP);
      rounds += 1;
      let report: CollectionReport | undefined;
      await eventually(async () => {
        const { info } = await schedule.describe();
        const action = info.recentActions[rounds - 1]?.action;
        assert.ok(action, 'the round has not begun');
        report = await client.workflow.getHandle(action.workflow.workflowId).result();
      }, 20_000);
      assert.ok(report);
      return report;
    };
    await tell({ server, round });
  });
}

describe('the Schedule of a provider', () => {
  useWorkflowServer();

  it('is made once, says what it is, and stays paused when somebody paused it', async () => {
    await withSchedule(new CollectWorld(), async ({ server: { client } }) => {
      const schedule = client.schedule.getHandle('gc-pve');
      await schedule.pause('looking at something');
      await restCollection(client, 'pve');
      await ensureCollection(client, 'pve');
      const { state, policies, spec } = await schedule.describe();
      assert.equal(state.paused, true);
      assert.equal(policies.overlap, 'SKIP');
      assert.equal(spec.intervals?.length, 1);
      await schedule.unpause('done');
      await restCollection(client, 'pve');
      await restCollection(client, 'other');
      assert.equal((await schedule.describe()).state.paused, true);
      await ensureCollection(client, 'pve');
      assert.equal((await schedule.describe()).state.paused, false);
      assert.match((await schedule.describe()).state.note ?? '', /whose Proxy is gone/);
    });
  });

  it('lets a round remember the one before', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    await withSchedule(world, async ({ round }) => {
      const first = await round();
      assert.equal(first.vms[0]?.rounds, 1);
      assert.deepEqual(world.signals, []);
      const second = await round();
      assert.equal(second.vms[0]?.rounds, 2);
      assert.equal(second.vms[0]?.firstSeenMs, first.vms[0]?.firstSeenMs);
      assert.deepEqual(world.signals, [{ provider: 'pve', vmid: 300, owner: lostOwner }]);
    });
  });
});

describe('a round', () => {
  useWorkflowServer();

  it('tells what is new, and no more of it in the next', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    world.seeds = [lostSeed('pve2')];
    world.settings = { ...world.settings, graceMs: 600_000 };
    await withSchedule(world, async ({ round }) => {
      await round();
      await round();
      const [first, second] = world.published;
      assert.deepEqual(first?.events.map(({ reason }) => reason), ['OrphanFound', 'OrphanFound']); // prettier-ignore
      assert.deepEqual(second?.events, []);
      const { vms, seeds, leftovers } = second ?? {};
      assert.deepEqual({ vms, seeds, leftovers }, { vms: 1, seeds: 1, leftovers: 0 });
    });
    assert.deepEqual([world.signals, world.deletedFrom], [[], []]);
  });

  it('deletes a seed once it was examined; one that cannot be deleted holds up no other', async () => {
    const world = new CollectWorld();
    world.seeds = [lostSeed('pve1'), lostSeed('pve2')];
    world.stuckNodes.add('pve1');
    await withSchedule(world, async ({ round }) => {
      await round();
      assert.deepEqual(world.deletedFrom, []);
      const report = await round();
      assert.deepEqual(world.deletedFrom, ['pve2']);
      assert.match(report.seeds[0]?.outlook ?? '', /could not be removed \(DeletionBlocked\)/);
      const [event] = world.published.at(-1)?.events ?? [];
      assert.equal(event?.reason, 'OrphanCollected');
    });
    assert.deepEqual(world.asked.map(({ due }) => due.length), [0, 2]); // prettier-ignore
  });

  it('only reports in report mode', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    world.seeds = [lostSeed()];
    world.leftovers = [{ owner: lostOwner, vmid: 310, state: 'free' }];
    world.settings = { ...world.settings, mode: 'report' };
    await withSchedule(world, async ({ round }) => {
      await round();
      const report = await round();
      assert.equal(report.vms.length + report.seeds.length + report.leftovers.length, 3);
    });
    assert.deepEqual([world.signals, world.deletedFrom], [[], []]);
  });

  it('holds everything when too many are orphans, until the config names the alarm', async () => {
    const world = new CollectWorld();
    world.managed = 2;
    world.orphans = [lostVm(300), lostVm(301)];
    world.seeds = [lostSeed()];
    await withSchedule(world, async ({ round }) => {
      await round();
      const { alarm } = await round();
      assert.equal(alarm?.kind, 'MassAbsence');
      assert.deepEqual([world.signals, world.deletedFrom], [[], []]);
      assert.equal(world.published.at(-1)?.alarm?.id, alarm?.id);
      world.settings = { ...world.settings, confirmAbsence: alarm?.id ?? '' };
      await round();
    });
    assert.deepEqual(world.signals.map(({ vmid }) => vmid), [300, 301]); // prettier-ignore
    assert.deepEqual(world.deletedFrom, ['pve1']);
  });

  it('holds everything when Kubernetes went back in time', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    await withSchedule(world, async ({ round }) => {
      await round();
      world.version = '900';
      assert.equal((await round()).alarm?.kind, 'ClusterRolledBack');
      assert.equal((await round()).alarm?.kind, 'ClusterRolledBack');
    });
    assert.deepEqual(world.signals, []);
  });

  it('remembers an alarm over a time in which nobody served the provider', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    await withSchedule(world, async ({ server: { client }, round }) => {
      await round();
      world.version = '900';
      const { alarm } = await round();
      await restCollection(client, 'pve');
      await ensureCollection(client, 'pve');
      world.version = '950';
      const woken = await round();
      assert.deepEqual(woken.alarm, alarm);
      assert.equal(woken.newestVersion, '1000');
    });
    assert.deepEqual(world.signals, []);
  });

  it('holds up what the ProviderHealth says is held when its Schedule was deleted', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    world.shownAlarm = 'rollback-20261129T190000Z';
    await withSchedule(world, async ({ round }) => {
      world.problems.push({ reason: 'Unreachable', scope: 'provider' });
      await round();
      assert.equal(world.published.at(-1)?.blind, true);
      await round();
      assert.equal((await round()).alarm?.id, world.shownAlarm);
      assert.equal(world.published.at(-1)?.blind, false);
    });
    assert.deepEqual(world.signals, []);
  });

  it('forgets nothing when it could not look, and says why', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    await withSchedule(world, async ({ round }) => {
      const first = await round();
      world.problems.push({ reason: 'Unreachable', scope: 'provider' });
      const blind = await round();
      assert.match(blind.problem ?? '', /^Unreachable: /);
      assert.deepEqual(blind.vms, first.vms);
      assert.match(world.published.at(-1)?.problem ?? '', /^Unreachable: /);
      assert.equal((await round()).problem, null);
    });
    assert.equal(world.signals.length, 1);
  });

  it('collects VMs although the seeds cannot be listed for good, and says why', async () => {
    const world = new CollectWorld();
    world.orphans = [lostVm()];
    world.seeds = [lostSeed()];
    await withSchedule(world, async ({ round }) => {
      await round();
      world.permanent = true;
      world.problems.push({ reason: 'StorageUnavailable', scope: 'provider' });
      const report = await round();
      assert.match(report.problem ?? '', /^StorageUnavailable: /);
      assert.equal(report.seeds.length, 1, 'what is known of seeds is not forgotten');
    });
    assert.equal(world.signals.length, 1);
    assert.deepEqual(world.deletedFrom, []);
  });

  it('tells the runs of Proxies about leftovers that are gone or free', async () => {
    const world = new CollectWorld();
    world.leftovers = [
      { owner: lostOwner, vmid: 310, state: 'free' },
      { owner: lostOwner, vmid: 311, state: 'gone' },
    ];
    await withSchedule(world, async ({ round }) => {
      await round();
    });
    assert.deepEqual(world.signals.map(({ vmid }) => vmid), [310, 311]); // prettier-ignore
  });
});

describe('the signal of an orphan', () => {
  useWorkflowServer();

  it('starts the run of its owner where there is none, and reaches the one there is', async () => {
    const steps = new FakeWorld().steps();
    await onServer(steps, { realTime: true }, async ({ client }) => {
      const send = orphanSender(client);
      await send(lostOwner, { provider: 'pve', vmid: 300 });
      await send(lostOwner, { provider: 'pve', vmid: 301 });
      const handle = client.workflow.getHandle(proxyWorkflowId(lostOwner.uid));
      // A signal that comes during a decision is in the history after it.
      await eventually(async () => {
        const { events } = await handle.fetchHistory();
        const signals = events?.filter((event) => event.workflowExecutionSignaledEventAttributes);
        assert.equal(signals?.length, 2);
      }, 15_000);
      await handle.terminate('the test is over');
    });
  });
});
