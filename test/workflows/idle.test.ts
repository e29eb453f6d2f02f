/** A Proxy to which nothing happens adds nothing to its history (design §7). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Proxy } from '../../api/proxy.ts';
import { statusPatch } from '../../activities/kubernetes/statusPatch.ts';
import { specHash } from '../../activities/vm/specHash.ts';
import { aProxy } from '../support/aProxy.ts';
import { desiredProxy, FakeWorld, proxyRef } from '../support/fakeWorld.ts';
import { startIdleWatch, type StillVm } from '../support/idleWatch.ts';
import { ready } from '../support/storyParts.ts';
import { tellStory, useWorkflowServer, type Story } from '../support/workflowHarness.ts';

const placement = { region: null, zone: 'pv1-1', machineType: 'small', image: 'debian-13' };
const userData = Buffer.from('#cloud-config\n');
const secretKeyRef = { name: 'init', key: 'user-data' };

/** The object as Kubernetes holds it once the world's last status is written. */
function objectOf({ status }: FakeWorld): Proxy {
  assert.ok(status);
  const { zone, machineType, image } = placement;
  return aProxy({
    metadata: { ...proxyRef },
    spec: {
      provider: 'pve',
      placement: { zone, machineType, image },
      cloudInit: undefined,
      cloudInitFrom: { secretKeyRef },
    },
    status: statusPatch({}, status, new Date()) ?? {},
  });
}

function listed({ vms }: FakeWorld): StillVm[] {
  return [...vms.values()].map(({ node = 'pv1-1', ...vm }) => ({ ...vm, node }));
}

async function eventsOf({ handle }: Story): Promise<number> {
  const { events } = await handle.fetchHistory();
  return events?.length ?? 0;
}

describe('an idle Proxy', () => {
  useWorkflowServer();

  it('has the same history after 60,000 rounds of the watch, whose next news still reaches it', async () => {
    const world = new FakeWorld();
    const hash = specHash({ mode: 'Managed', provider: 'pve', placement, cloudInit: userData });
    world.desired = desiredProxy({ specHash: hash });
    await tellStory(world, async (story) => {
      const { handle, settled, until } = story;
      await ready(story);
      await settled();
      const [vm] = world.vms.values();
      assert.ok(vm);
      const before = await eventsOf(story);
      const statuses = world.statuses.length;
      const proxy = objectOf(world);
      const watch = startIdleWatch({
        proxies: () => [proxy],
        vms: () => listed(world),
        secrets: new Map([[`${proxyRef.namespace}/init/user-data`, userData]]),
        observed: (_id, news) => handle.signal('observed', news),
        desiredChanged: (_id, generation) =>
          handle.signal('desiredChanged', { generation, deleting: false }),
      });
      try {
        await watch.until(60_000);
        await settled();
        assert.deepEqual([await eventsOf(story), world.statuses.length], [before, statuses]);
        // About every ten minutes, and its Secret hashed with it.
        assert.ok(watch.agentsAsked() > 900, `its agent was asked ${watch.agentsAsked()} times`);
        vm.power = 'stopped';
        await watch.until(60_003);
        await until(() => vm.starts === 2, 'started again');
        assert.ok((await eventsOf(story)) > before);
      } finally {
        await watch.stop();
      }
    });
  });
});
