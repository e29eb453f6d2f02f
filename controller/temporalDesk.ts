/** `Desk` over a Temporal client. */
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { SearchAttributePair } from '@temporalio/common';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowStartOptions } from '@temporalio/client';
import { grpcCodeOf, grpcCodes } from '../worker/runtime/grpc.ts';
import {
  mainTaskQueue,
  proxyWorkflowDetails,
  proxyWorkflowId,
  proxyWorkflowType,
  searchAttributeTypes,
  signalNames,
} from '../workflows/contract/messages.ts';
import type { DesiredChanged, ProxyWorkflowInput } from '../workflows/contract/messages.ts';
import type { Desk, DeskState, ProxyIdentity } from './desk.ts';

export interface TemporalDeskOptions {
  client: Client;
  /** All search attributes are registered; a run that used a missing one would be stuck for ever. */
  searchAttributes: boolean;
  /** For each question, in milliseconds; absent: 10 s. */
  deadlineMs?: number;
}

/** A call to a Temporal that is away would otherwise block for the client's own 20 s of retries. */
const callDeadlineMs = 10_000;
/** A poller is listed for five minutes after its last poll; a poll lasts one minute. */
const pollerFreshMs = 90_000;
const idPrefix = proxyWorkflowId('');

/** Throws what the client throws; a run that does not exist is no failure of `tellGone`. */
export function createTemporalDesk({
  client,
  searchAttributes,
  deadlineMs = callDeadlineMs,
}: TemporalDeskOptions): Desk {
  const { connection, options } = client;
  const { namespace } = options;

  function within<T>(call: () => Promise<T>): Promise<T> {
    return connection.withDeadline(Date.now() + deadlineMs, call);
  }
  function startOptions({ ref, provider }: ProxyIdentity): WorkflowStartOptions {
    const input: ProxyWorkflowInput = { ref, searchAttributes };
    return {
      taskQueue: mainTaskQueue,
      workflowId: proxyWorkflowId(ref.uid),
      args: [input],
      staticSummary: `${ref.namespace}/${ref.name}`,
      staticDetails: proxyWorkflowDetails,
      ...(searchAttributes ? { typedSearchAttributes: attributesOf({ ref, provider }) } : {}),
    };
  }

  return {
    async ensure(proxy) {
      await within(() =>
        client.workflow.start(proxyWorkflowType, {
          ...startOptions(proxy),
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      );
    },

    async tell(proxy, news) {
      await within(() =>
        client.workflow.signalWithStart(proxyWorkflowType, {
          ...startOptions(proxy),
          signal: signalNames.desiredChanged,
          signalArgs: [news],
        }),
      );
    },

    async tellGone(ref, news: DesiredChanged) {
      const handle = client.workflow.getHandle(proxyWorkflowId(ref.uid));
      try {
        await within(() => handle.signal(signalNames.desiredChanged, news));
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },

    async running() {
      const query = `WorkflowType = '${proxyWorkflowType}' AND ExecutionStatus = 'Running'`;
      const uids = new Set<string>();
      // One deadline for all its pages: a list that never ends would end all resyncs.
      await within(async () => {
        for await (const { workflowId } of client.workflow.list({ query })) {
          if (workflowId.startsWith(idPrefix)) uids.add(workflowId.slice(idPrefix.length));
        }
      });
      return uids;
    },

    async state(): Promise<DeskState> {
      try {
        const { pollers } = await within(() =>
          connection.workflowService.describeTaskQueue({
            namespace,
            taskQueue: { name: mainTaskQueue },
          }),
        );
        const lastMs = Math.max(0, ...pollers.map(({ lastAccessTime }) => toMs(lastAccessTime)));
        return Date.now() - lastMs < pollerFreshMs ? 'up' : 'noWorkers';
      } catch (error) {
        // A key that may not ask this may still start workflows.
        return grpcCodeOf(error) === grpcCodes.permissionDenied ? 'up' : 'down';
      }
    },
  };
}

function attributesOf({ ref, provider }: ProxyIdentity): TypedSearchAttributes {
  const pairs: SearchAttributePair[] = [
    {
      key: defineSearchAttributeKey('ProxyName', searchAttributeTypes.ProxyName),
      value: `${ref.namespace}/${ref.name}`,
    },
    {
      key: defineSearchAttributeKey('ProxyPhase', searchAttributeTypes.ProxyPhase),
      value: 'Pending',
    },
  ];
  if (provider !== null) {
    const key = defineSearchAttributeKey('ProxyProvider', searchAttributeTypes.ProxyProvider);
    pairs.push({ key, value: provider });
  }
  return new TypedSearchAttributes(pairs);
}

function toMs(time: { seconds?: unknown } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1_000;
}
