/** The watch of one provider over the simulator, with the statuses a test gives it. */
import assert from 'node:assert/strict';
import type { Proxy } from '../../api/proxy.ts';
import { watchVms } from '../../activities/watchVms.ts';
import type { Observed } from '../../workflows/contract/messages.ts';
import type { Vm } from '../simulator/cluster.ts';
import { powerOn } from '../simulator/power.ts';
import { aWatchedProxy, type WatchedFields } from './aWatchedProxy.ts';
import { eventually } from './eventually.ts';
import { stepFixture } from './stepFixture.ts';
import { withSteps, type StepRig } from './stepHarness.ts';

/** A watch under way. */
export interface Watching {
  rig: StepRig;
  /** What the statuses say; replace an entry as a workflow would. */
  proxies: Proxy[];
  told: { workflowId: string; news: Observed }[];
  reread: string[];
  /** Waits until `count` more listings have been taken. */
  rounds: (count: number) => Promise<void>;
  listings: () => number;
}

/** Guests keep the address a test gives them. */
const slowGuests = { fixture: stepFixture({ times: { agentSeconds: 100_000 } }) };
/** Seconds of production are some milliseconds here. */
export const budgetScale = 0.004;

/**
 * Runs `body` beside a watch of what `setUp` placed; the watch ends with it. `random` decides when agents are asked first: 0 at
 * once, 1 not before the next pass.
 */
export async function onWatch(
  body: (watching: Watching) => Promise<void>,
  setUp: (rig: StepRig) => Proxy[],
  random = 1,
  options = slowGuests,
): Promise<void> {
  await withSteps(async (rig) => {
    const proxies = setUp(rig);
    rig.simulator.refreshStats();
    const told: Watching['told'] = [];
    const reread: string[] = [];
    const attempt = new AbortController();
    const pace = { ...rig.deps.pace, budgetScale };
    const steps = { ...rig.deps, pace };
    const step = watchVms(
      {
        steps,
        api: (name, call) => rig.clients.laneApi(name, 'watch', call),
        watchProxies: () => ({
          list: () => proxies,
          synced: () => true,
          stop: () => Promise.resolve(),
        }),
        alarms: rig.deps.alarms,
        observed: (workflowId, news) => {
          told.push({ workflowId, news });
          return Promise.resolve();
        },
        desiredChanged: (workflowId) => {
          reread.push(workflowId);
          return Promise.resolve();
        },
        random: () => random,
      },
      {
        call: { signal: attempt.signal, writesUntilMs: 0 },
        scheduledAtMs: 0,
        heartbeat: () => undefined,
        log: rig.deps.log,
      },
      { provider: 'pve' },
    );
    const running = step.catch((error: unknown) => error);
    const listings = (): number => rig.sent('GET', /\/cluster\/resources/).length;
    const rounds = async (count: number): Promise<void> => {
      const from = listings();
      await eventually(() => listings() >= from + count);
    };
    try {
      await body({ rig, proxies, told, reread, rounds, listings });
    } finally {
      attempt.abort(new Error('over'));
      assert.match(String(await running), /over/);
    }
  }, options);
}

/** The n-th VM, running and with its tag, and the Proxy whose status describes it. */
export function placed(rig: StepRig, n: number, fields: WatchedFields = {}): [Vm, Proxy] {
  const config = { name: `vm-${n}`, tags: 'proxy_operator' };
  const vm = rig.place({ vmid: 100_000 + n, config });
  powerOn(rig.simulator.core, vm);
  assert.ok(vm.running);
  Object.assign(vm.running, { agentUp: true, address: `192.0.2.${n}` });
  return [vm, aWatchedProxy(n, fields)];
}

/** As many of these, for `onWatch`. */
export function proxiesOf(count: number): (rig: StepRig) => Proxy[] {
  return (rig) => Array.from({ length: count }, (_, n) => placed(rig, n + 1)[1]);
}

/** ID of the run of a Proxy. */
export const workflowOf = ({ metadata }: Proxy): string => `proxy-${metadata.uid}`;
