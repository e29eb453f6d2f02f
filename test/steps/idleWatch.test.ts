/** A week of a watch over VMs that stay as they are: 60,000 rounds of ten seconds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { aWatchedProxy } from '../support/aWatchedProxy.ts';
import { startIdleWatch } from '../support/idleWatch.ts';

/** A number kept for each VM in each round would be five times as much; without, it is a tenth. */
const roomBytes = 512 * 1024;

/** Bytes that are in use once everything that nobody holds is gone. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  assert.ok(typeof collect === 'function');
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

describe('watchVms over VMs that stay as they are', () => {
  it('holds no more memory after 60,000 rounds than after 10,000, and tells nobody anything', async () => {
    const numbers = Array.from({ length: 5 }, (_, n) => n + 1);
    const proxies = numbers.map((n) => aWatchedProxy(n));
    const vms = numbers.map((n) => ({
      vmid: 100_000 + n,
      node: 'pve1',
      name: `vm-${n}`,
      ip: `192.0.2.${n}`,
      power: 'running',
    }));
    const told: string[] = [];
    const tell = (workflowId: string): Promise<void> => {
      told.push(workflowId);
      return Promise.resolve();
    };
    const watch = startIdleWatch({
      proxies: () => proxies,
      vms: () => vms,
      observed: tell,
      desiredChanged: tell,
    });
    try {
      await watch.until(10_000);
      const early = heapBytes();
      await watch.until(60_000);
      const late = heapBytes();
      assert.ok(late - early < roomBytes, `${late - early} bytes more after 50,000 rounds`);
      // About every ten minutes each.
      assert.ok(watch.agentsAsked() > 5 * 900, `${watch.agentsAsked()} agents asked`);
      assert.deepEqual([told, watch.lines], [[], []]);
    } finally {
      await watch.stop();
    }
  });
});
