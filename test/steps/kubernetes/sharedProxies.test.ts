import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createKubernetesClient } from '../../../activities/kubernetes/client.ts';
import { sharedProxies } from '../../../worker/sharedProxies.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeKubernetes } from '../../support/fakeKubernetes.ts';
import { recordingLog } from '../../support/recordingLog.ts';

it('all watchers of a process share one watch, which ends with the last of them', async () => {
  const server = await new FakeKubernetes().start();
  const client = createKubernetesClient(server.kubeConfig(), 2_000);
  try {
    const watch = sharedProxies(client, recordingLog().log);
    let changes = 0;
    const one = watch({ changed: () => void (changes += 1) });
    const two = watch({});
    await eventually(() => one.synced() && server.openWatches() === 1);
    server.put('p1', {});
    await eventually(() => two.list().length === 1 && changes > 0);
    const watches = server.requests.filter((request) => request.watch);
    assert.equal(watches.length, 1);
    await one.stop();
    assert.equal(server.openWatches(), 1);
    await two.stop();
    await eventually(() => server.openWatches() === 0);
    const three = watch({});
    await eventually(() => three.synced() && three.list().length === 1);
    await three.stop();
  } finally {
    await client.close();
    await server.stop();
  }
});
