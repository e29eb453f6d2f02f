/** The watch of a provider's VMs beside its checks: always one, whatever happens to it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { waitHere } from '../support/heldSteps.ts';
import { FakeCluster, tellProvider } from '../support/providerStory.ts';
import { useWorkflowServer } from '../support/workflowHarness.ts';

useWorkflowServer();

const soon = { nodes: ['a'], intervalMs: 200, timeoutMs: 5_000 };
const forever = Promise.withResolvers<void>().promise;

/** A cluster whose first `failures` watches fail; later ones go on until they are cancelled. */
class WatchedCluster extends FakeCluster {
  started = 0;
  readonly providers = new Set<string>();
  readonly #failures: number;

  constructor(failures: number) {
    super(soon);
    this.#failures = failures;
  }

  override steps(): ReturnType<FakeCluster['steps']> {
    const steps = super.steps();
    return {
      ...steps,
      watchVms: async (input) => {
        this.started += 1;
        this.providers.add(input.provider);
        if (this.started <= this.#failures) return steps.watchVms(input);
        await waitHere(forever);
      },
    };
  }
}

describe('the watch of a provider', () => {
  it('is started again after it failed, while the checks go on', async () => {
    const cluster = new WatchedCluster(1);
    await tellProvider(
      cluster,
      async (story) => {
        await story.until(() => cluster.started === 2, 'a second watch');
        const checked = cluster.checks.length;
        await story.until(() => cluster.checks.length > checked + 1, 'further checks');
        assert.deepEqual([cluster.started, [...cluster.providers]], [2, ['pve']]);
      },
      { realTime: true },
    );
  });

  it('is handed over when the run continues as new', async () => {
    const cluster = new WatchedCluster(0);
    await tellProvider(
      cluster,
      async (story) => {
        // The one of the run before ends with its next heartbeat that Temporal answers.
        await story.until(() => cluster.started === 2, 'the watch of the next run');
      },
      { suggestContinueAsNewAt: 60 },
    );
  });
});
