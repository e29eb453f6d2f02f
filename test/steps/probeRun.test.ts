/** The activity as a worker registers it: what comes from Temporal and not from the worker. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { it } from 'node:test';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createWatchers } from '../../worker/watchers.ts';
import type { HealthSignal } from '../../workflows/contract/messages.ts';
import { aProxy } from '../support/aProxy.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recordingLog.ts';
import { withSteps } from '../support/stepHarness.ts';
import { TestPage, TestProxy } from '../support/testProxy.ts';

it('orders the signals of successive workers by the clock of Temporal, not by theirs', () =>
  withSteps(async (rig) => {
    const [proxy, page] = [new TestProxy(), new TestPage()];
    const healthCheckUrl = `http://127.0.0.1:${await page.start()}/`;
    const status = { phase: 'Running', ip: '127.0.0.1' };
    const proxies = [aProxy({ spec: { port: await proxy.start() }, status })];
    const watchProxies = () => ({
      list: () => proxies,
      synced: () => true,
      stop: () => Promise.resolve(),
    });
    const { log } = recordingLog();
    /** The run that the first signal of an attempt carries, on a worker whose clock is off by so much. */
    const runOf = async (scheduledMs: number, clockOffMs: number): Promise<string> => {
      const told: HealthSignal[] = [];
      const shutdown = new AbortController();
      const watchers = createWatchers(
        {
          watchProxies,
          readSecret: () => Promise.reject(new Error('no Secret here')),
          signal: (_workflowId, health) => {
            told.push(health);
            return Promise.resolve();
          },
          healthCheckUrl,
          clock: {
            now: () => Date.now() + clockOffMs,
            sleep: (ms, signal) => delay(ms, undefined, { signal }),
          },
          log,
        },
        {
          steps: rig.deps,
          api: (name, call) => rig.clients.laneApi(name, 'watch', call),
          watchProxies,
          alarms: rig.deps.alarms,
          observed: () => Promise.resolve(),
          desiredChanged: () => Promise.resolve(),
          random: () => 0,
        },
        shutdown.signal,
        log,
      );
      const attempt = new MockActivityEnvironment({
        scheduledTimestampMs: 0,
        currentAttemptScheduledTimestampMs: scheduledMs,
      });
      const running = attempt.run(() => watchers.probeProxies()).catch((error: unknown) => error);
      await eventually(() => told.length > 0, 20_000);
      shutdown.abort();
      await running;
      return told[0]?.run ?? '';
    };
    try {
      const first = await runOf(Date.UTC(2026, 0, 1, 12, 0, 0), 0);
      // The next attempt of the same step, on a worker an hour behind.
      const second = await runOf(Date.UTC(2026, 0, 1, 12, 0, 5), -3_600_000);
      assert.ok(second > first, `${second} sorts before ${first}`);
    } finally {
      await proxy.stop();
      await page.stop();
    }
  }));
