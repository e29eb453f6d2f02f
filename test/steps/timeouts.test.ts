/** Every row of the table of timeouts (specification, Timeouts): its number, what happens when it is over, and what does not. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitRunning } from '../../activities/awaitRunning.ts';
import { awaitTask } from '../../activities/awaitTask.ts';
import type { Clock } from '../../activities/deps.ts';
import { settingsOf } from '../../activities/proxmox/clients.ts';
import { defaultLimits } from '../../activities/proxmox/http.ts';
import { pace } from '../../worker/dependencies.ts';
import { waitBudgets, type WaitKind } from '../../workflows/contract/budgets.ts';
import { newHaResource } from '../simulator/endpoints/ha.ts';
import { aProviderConfig } from '../support/aPlan.ts';
import { eventually } from '../support/eventually.ts';
import { answerData } from '../support/httpsPeer.ts';
import { asWords, failureOf, upid as someUpid, withRig } from '../support/proxmoxClient.ts';
import { writes } from '../support/removals.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts';

const second = 1_000;
const minute = 60 * second;

/** A clock that goes on only while somebody waits. */
function waitingClock(): Clock & { waitedMs: () => number; pauses: number[] } {
  const startMs = Date.now();
  const pauses: number[] = [];
  const waitedMs = (): number => pauses.reduce((sum, ms) => sum + ms, 0);
  return {
    pauses,
    waitedMs,
    now: () => startMs + waitedMs(),
    sleep: (ms) => {
      pauses.push(ms);
      return Promise.resolve();
    },
  };
}

/** Uses this clock, at the pace of a worker, from now on. */
function useClock(rig: StepRig): ReturnType<typeof waitingClock> {
  const clock = waitingClock();
  rig.deps.clock = clock;
  rig.deps.pace = pace;
  return clock;
}

function endlessTask(rig: StepRig): { upid: string; end: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const spec = { node: 'pve1', type: 'qmclone', id: '9001', authId: 'proxy-operator@pve!operator' };
  return { upid: rig.simulator.core.tasks.start(spec, () => promise), end: resolve };
}

describe('the wait for a task', () => {
  // Numbers of the page, so that an edit of our table shows here.
  const rows: [kind: WaitKind, budgetMs: number][] = [
    ['clone', 10 * minute],
    ['upload', 2 * minute],
    ['resize', 2 * minute],
    ['start', 2 * minute],
    ['stop', 2 * minute],
    ['destroy', 5 * minute],
    ['seedDelete', 1 * minute],
  ];
  for (const [kind, budgetMs] of rows) {
    it(`${kind} ends after ${budgetMs / minute} min, names the UPID, leaves the task alone, and the next wait finds its result`, () =>
      withSteps(async (rig) => {
        const { upid, end } = endlessTask(rig);
        const input = { provider: 'pve', upid, kind, vmid: rig.vmid };
        const clock = useClock(rig);
        const since = { scheduledAtMs: clock.now() };
        const error = await rig.refusal(awaitTask, input, since);
        expectReason(error, 'BudgetExceeded');
        const lateMs = clock.waitedMs() - budgetMs;
        assert.ok(lateMs > 0 && lateMs <= second, `${lateMs} ms after its budget`);
        assert.deepEqual([error.errorClass, error.facts.goBack], ['Transient', true]);
        assert.equal(error.facts.upid, upid);
        assert.ok(error.message.includes(upid), error.message);
        assert.ok(error.message.includes(`after ${budgetMs / minute} min`), error.message);
        assert.deepEqual(writes(rig), []);
        assert.equal(rig.simulator.core.tasks.find(upid)?.running, true);
        end();
        await eventually(() => rig.simulator.core.tasks.find(upid)?.running === false);
        const late = { scheduledAtMs: clock.now() };
        assert.deepEqual(await rig.run(awaitTask, input, late), { warnings: 0 });
      }));
  }

  it('asks after max(100 ms, 5 % of what it has waited), never less often than once a second', () =>
    withSteps(async (rig) => {
      const { upid } = endlessTask(rig);
      const clock = useClock(rig);
      const input = { provider: 'pve', upid, kind: 'upload', vmid: rig.vmid } as const;
      await rig.refusal(awaitTask, input, { scheduledAtMs: clock.now() });
      const { pauses } = clock;
      assert.equal(pauses[0], 100);
      let waitedMs = 0;
      for (const pause of pauses) {
        const wanted = Math.min(1_000, Math.max(100, waitedMs * 0.05));
        // The clock's own numbers are too large for all digits of a fraction.
        assert.ok(Math.abs(pause - wanted) < 0.01, `${pause} ms instead of ${wanted} ms`);
        waitedMs += pause;
      }
      assert.equal(pauses.at(-1), 1_000);
    }));

  it('counts from its first scheduling, whatever attempt it is by now', () =>
    withSteps(async (rig) => {
      const { upid } = endlessTask(rig);
      const clock = useClock(rig);
      const input = { provider: 'pve', upid, kind: 'start', vmid: rig.vmid } as const;
      const error = await rig.refusal(awaitTask, input, {
        scheduledAtMs: clock.now() - 2 * minute,
      });
      expectReason(error, 'BudgetExceeded');
      assert.ok(clock.waitedMs() <= second);
    }));

  it('does not take a node that stays silent for the end of its task', () =>
    withSteps(async (rig) => {
      const { upid } = endlessTask(rig);
      const clock = useClock(rig);
      const input = { provider: 'pve', upid, kind: 'clone', vmid: rig.vmid } as const;
      const action = { kind: 'status', status: 596, reason: 'Connection timed out', when: 'before' } as const; // prettier-ignore
      rig.simulator.faults.push({ method: 'GET', path: /\/tasks\//, action, times: Infinity });
      const early = await rig.refusal(awaitTask, input, { scheduledAtMs: clock.now() });
      expectReason(early, 'Unreachable');
      assert.equal(early.facts.taskEnded, undefined);
      const late = await rig.refusal(awaitTask, input, {
        scheduledAtMs: clock.now() - waitBudgets.clone - second,
      });
      expectReason(late, 'BudgetExceeded');
      assert.match(late.message, /cannot be asked about/);
    }));
});

describe('the wait for a VM to run', () => {
  it('ends 60 s after its start, asked once a second, with what helps', () =>
    withSteps(async (rig) => {
      const vm = rig.place();
      rig.simulator.cluster.ha.resources.set(vm.vmid, newHaResource(vm.vmid, 'stopped'));
      const clock = useClock(rig);
      const input = { ref: rig.ref, plan: rig.plan, vm: rig.vmRef() };
      const error = await rig.refusal(awaitRunning, input, { scheduledAtMs: clock.now() });
      expectReason(error, 'BudgetExceeded');
      assert.ok(clock.waitedMs() > minute && clock.waitedMs() <= minute + 1_000);
      assert.deepEqual([...new Set(clock.pauses)], [1_000]);
      assert.match(error.message, /60 s .*ha-manager status/);
    }));
});

describe('bounds of a request', () => {
  it('are 10 s for the TCP connect, 10 s for the TLS handshake and 30 s for the whole unless the config says otherwise', () => {
    assert.equal(defaultLimits.tcpTimeoutMs, 10 * second);
    assert.equal(defaultLimits.tlsTimeoutMs, 10 * second);
    assert.equal(settingsOf(aProviderConfig()).requestBoundMs, 30 * second);
    const other = aProviderConfig({ requestTimeoutSeconds: 45 });
    assert.equal(settingsOf(other).requestBoundMs, 45 * second);
  });

  it('end that request only: others of the client go on over their connections', () =>
    // The bound is over all of them, so it is far beyond what two answers take on a busy machine.
    withRig({ requestBoundMs: 2 * second }, async ({ api, peer }) => {
      const cancelledArrived = Promise.withResolvers<void>();
      peer.answer = ({ url }, response) => {
        if (url.endsWith('/110/status/start')) return;
        if (url.endsWith('/111/status/stop')) cancelledArrived.resolve();
        else answerData(response, someUpid);
      };
      const cancel = new AbortController();
      const overlong = failureOf(api().start('pve1', 110));
      const cancelled = api({ signal: cancel.signal }).stop('pve1', 111);
      await cancelledArrived.promise;
      const other = api().stop('pve1', 112);
      cancel.abort(new Error('cancelled'));
      await assert.rejects(cancelled, /cancelled/);
      assert.equal(await other, someUpid);
      assert.equal(asWords(await overlong), 'Transient Timeout provider');
      peer.answer = (_request, response) => answerData(response, someUpid);
      assert.equal(await api().start('pve1', 113), someUpid);
    }));
});
