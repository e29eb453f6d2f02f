/** The `provider` workflow over a fake cluster: nodes that are well or not, and what was published about them. */
import { ApplicationFailure } from '@temporalio/common';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { FailureFacts, TargetReason } from '../../workflows/contract/errors.ts';
import { mainTaskQueue, providerWorkflowId } from '../../workflows/contract/messages.ts';
import type { CheckSettings, TargetHealth } from '../../workflows/contract/providerSteps.ts';
import type { Steps } from '../../workflows/contract/stepTable.ts';
import type { provider } from '../../workflows/index.ts';
import { eventually } from './eventually.ts';
import { waitHere } from './heldSteps.ts';
import { onServer, type StorySettings } from './workflowHarness.ts';

export class FakeCluster {
  /** As configured where the checks run. */
  settings: CheckSettings;
  /** Reasons of nodes that are not well. */
  readonly troubles = new Map<string, TargetReason>();
  /** Nodes whose check never comes to an end. */
  readonly hung = new Set<string>();
  /** Every published list; `null`: the object was removed. */
  readonly published: (TargetHealth[] | null)[] = [];
  /** Nodes in the order their checks began. */
  readonly checks: string[] = [];
  /** What the next publications fail with. */
  readonly refusals: FailureFacts[] = [];
  /** So many checks have to be under way at the same time before one of them ends. */
  together = 1;
  #meeting: { come: number; over: PromiseWithResolvers<void> } | null = null;
  /** `false`: the worker that polls has lost the provider from its config. */
  known = true;

  constructor(settings: Partial<CheckSettings> = {}) {
    this.settings = {
      address: 'https://192.0.2.1:8006',
      nodes: ['a', 'b'],
      intervalMs: 60_000,
      timeoutMs: 15_000,
      ...settings,
    };
  }

  /** «a Reachable, b Timeout» of the newest publication. */
  shown(): string {
    const targets = this.published.at(-1);
    if (targets === undefined) return 'nothing';
    return targets?.map(({ name, reason }) => `${name} ${reason}`).join(', ') ?? 'removed';
  }

  steps(): Pick<Steps, 'checkNode' | 'publishHealth' | 'watchVms'> {
    return {
      checkNode: async ({ node }) => {
        this.checks.push(node);
        const remedy = 'start a worker that has it';
        if (!this.known) throw failure({ reason: 'ProviderUnknown', scope: 'provider', remedy });
        if (this.hung.has(node)) await waitHere(Promise.withResolvers<void>().promise);
        if (this.together > 1) await this.#meet();
        const { settings } = this;
        if (!settings.nodes.includes(node)) return { target: null, settings };
        return { target: this.#target(node), settings };
      },
      publishHealth: ({ targets }) => {
        const refusal = this.refusals.shift();
        if (refusal !== undefined) return Promise.reject(failure(refusal));
        this.published.push(targets);
        return Promise.resolve({ recovered: [] });
      },
      // The test server skips no time while an activity runs.
      watchVms: () => Promise.reject(failure({ reason: 'Unreachable', scope: 'provider' })),
    };
  }

  async #meet(): Promise<void> {
    const meeting = (this.#meeting ??= { come: 0, over: Promise.withResolvers<void>() });
    meeting.come += 1;
    if (meeting.come === this.together) {
      this.#meeting = null;
      meeting.over.resolve();
    }
    await waitHere(meeting.over.promise);
  }

  #target(node: string): TargetHealth {
    const reason = this.troubles.get(node) ?? 'Reachable';
    return {
      name: node,
      address: this.settings.address,
      ready: reason === 'Reachable',
      reason,
      message: reason === 'Reachable' ? '' : `${node} is not well`,
      latencyMs: 5,
      checkedAt: '2026-11-29T12:00:00Z',
      details: { pveVersion: '9.2.11' },
    };
  }
}

export interface ProviderStory {
  cluster: FakeCluster;
  server: TestWorkflowEnvironment;
  handle: WorkflowHandleWithFirstExecutionRunId<typeof provider>;
  /** Waits (real time) until the newest publication reads so. */
  untilShown: (text: string) => Promise<void>;
  until: (check: () => boolean, what: string) => Promise<void>;
}

/** Starts `provider-pve`, runs `tell`, and ends the run if it still goes. */
export async function tellProvider(
  cluster: FakeCluster,
  tell: (story: ProviderStory) => Promise<void>,
  settings: StorySettings = {},
): Promise<void> {
  await onServer(cluster.steps(), settings, async (server) => {
    const handle = await server.client.workflow.start<typeof provider>('provider', {
      workflowId: providerWorkflowId('pve'),
      taskQueue: mainTaskQueue,
      args: [{ provider: 'pve', settings: cluster.settings }],
    });
    const until: ProviderStory['until'] = (check, what) =>
      eventually(() => {
        if (!check()) throw new Error(`never came true: ${what}; ${cluster.shown()}`);
      }, 15_000);
    const untilShown = (text: string): Promise<void> => until(() => cluster.shown() === text, text);
    try {
      await tell({ cluster, server, handle, until, untilShown });
    } finally {
      await handle.terminate('the test is over').catch(() => undefined);
    }
  });
}

function failure(facts: FailureFacts): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'Transient',
    message: `failed with ${facts.reason}`,
    nonRetryable: true,
    details: [facts],
  });
}
