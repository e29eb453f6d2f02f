/** When Temporal gives an attempt up, and when the attempt knows. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { ActivityNotFoundError } from '@temporalio/client';
import { stayAlive, type AliveAttempt } from '../../activities/attempt.ts';
import { heartbeatEveryMs, temporalSilenceMs } from '../../workflows/contract/budgets.ts';
import { stepTraits, type StepName } from '../../workflows/contract/stepTable.ts';
import { stepOptions } from '../../workflows/steps.ts';

const writingSteps = Object.entries(stepTraits)
  .filter(([, { effect }]) => effect === 'write')
  .map(([name]) => name);

function isStep(name: string): name is StepName {
  return name in stepTraits;
}

/** An attempt on a clock of its own; `answer` is what Temporal does with a heartbeat. */
function attempt(
  { mock }: TestContext,
  asking: boolean,
  answer: () => Promise<void>,
): { alive: AliveAttempt; pass: (ms: number) => Promise<void> } {
  mock.timers.enable({ apis: ['setInterval', 'Date'], now: 1_000_000 });
  const context = {
    info: { taskToken: new Uint8Array() },
    heartbeat: () => undefined,
    client: { activity: { heartbeat: answer } },
  };
  const alive = stayAlive(context, asking, () => Date.now());
  const pass = async (ms: number): Promise<void> => {
    await answersArrive();
    mock.timers.tick(ms);
    await answersArrive();
  };
  return { alive, pass };
}

function answersArrive(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

describe('a write that left at the last moment', () => {
  for (const name of writingSteps.filter(isStep)) {
    it(`is over before Temporal lets another attempt of ${name} begin`, () => {
      for (const boundSeconds of [1, 30, 120]) {
        const requestBoundMs = boundSeconds * 1_000;
        const call = { provider: 'pve', requestBoundMs, waitMs: 0, summary: '' };
        // The bound of an upload grows by a second per MiB; no seed is larger than 8 MiB.
        const lastEndMs = temporalSilenceMs + requestBoundMs + 8_000;
        const { heartbeatTimeout } = stepOptions(name, call);
        assert.ok(Number(heartbeatTimeout) > lastEndMs, `${heartbeatTimeout} > ${lastEndMs}`);
      }
    });
  }
});

describe('an attempt that writes', () => {
  it('counts from the last heartbeat that Temporal answered', async (t) => {
    let isReached = true;
    const { alive, pass } = attempt(t, true, () =>
      isReached ? Promise.resolve() : Promise.reject(new Error('no route to Temporal')),
    );
    await pass(heartbeatEveryMs);
    assert.equal(alive.answeredAtMs(), 1_000_000 + heartbeatEveryMs);
    isReached = false;
    await pass(heartbeatEveryMs);
    await pass(heartbeatEveryMs);
    assert.equal(alive.answeredAtMs(), 1_000_000 + heartbeatEveryMs);
    alive.stop();
  });

  it('learns at once that it was given up while its process was frozen', async (t) => {
    const { alive, pass } = attempt(t, true, () =>
      Promise.reject(new ActivityNotFoundError('activity not found')),
    );
    await pass(0);
    assert.equal(alive.answeredAtMs(), -Infinity);
    alive.stop();
  });
});
