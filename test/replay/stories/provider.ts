/** The workflow of a provider: rounds, an edit of the config, a fresh run, and its end. */
import { FakeCluster, tellProvider, type ProviderStory } from '../../support/providerStory.ts';
import type { StorySettings } from '../../support/workflowHarness.ts';
import type { CheckSettings } from '../../../workflows/contract/providerSteps.ts';
import type { Recording } from '../recordedStory.ts';
import { showHistory } from '../showHistory.ts';

const soon = { nodes: ['a', 'b'], intervalMs: 100, timeoutMs: 5_000 };

/** Keeps the first run once `tell` is through. */
function recordProvider(
  config: Partial<CheckSettings>,
  settings: StorySettings,
  tell: (story: ProviderStory) => Promise<void>,
): Recording {
  return (keep, name) =>
    tellProvider(
      new FakeCluster(config),
      async (story) => {
        await tell(story);
        const { workflowId, firstExecutionRunId } = story.handle;
        keep(name, await showHistory(story.server, workflowId, firstExecutionRunId));
      },
      settings,
    );
}

export const providerRecordings: Record<string, Recording> = {
  providerChecked: recordProvider(
    soon,
    { realTime: true },
    async ({ cluster, untilShown, until }) => {
      await untilShown('a Reachable, b Reachable');
      cluster.troubles.set('b', 'Unreachable');
      await untilShown('a Reachable, b Unreachable');
      cluster.refusals.push({ reason: 'KubernetesUnavailable', scope: 'proxy' });
      await until(() => cluster.refusals.length === 0, 'a refused publication');
      cluster.troubles.clear();
      cluster.settings = { ...cluster.settings, nodes: ['b', 'c'] };
      await untilShown('b Reachable, c Reachable');
    },
  ),
  providerWoken: recordProvider({ nodes: ['a'] }, {}, async ({ cluster, handle, untilShown }) => {
    await untilShown('a Reachable');
    cluster.troubles.set('a', 'Unauthorized');
    await handle.signal('providerChanged');
    await untilShown('a Unauthorized');
  }),
  providerGone: recordProvider({}, {}, async ({ cluster, handle, untilShown }) => {
    await untilShown('a Reachable, b Reachable');
    cluster.known = false;
    await handle.result();
  }),
  providerContinuedAsNew: recordProvider(
    soon,
    { suggestContinueAsNewAt: 40 },
    async ({ cluster, server, handle, until }) => {
      await until(() => cluster.published.length > 8, 'many rounds');
      const now = await server.client.workflow.getHandle(handle.workflowId).describe();
      if (now.runId === handle.firstExecutionRunId) throw new Error('there was no fresh run');
    },
  ),
};
