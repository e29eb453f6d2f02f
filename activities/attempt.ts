/** Whether Temporal still counts on an attempt: heartbeats that are answered, not only sent (design §3). */
import {
  ActivityCancelledError,
  ActivityNotFoundError,
  ActivityPausedError,
  ActivityResetError,
} from '@temporalio/client';
import { heartbeatEveryMs } from '../workflows/contract/budgets.ts';

/** What it takes of Temporal's `Context`. */
export interface AttemptContext {
  info: { taskToken: Uint8Array };
  heartbeat(details?: unknown): void;
  client: { activity: { heartbeat(taskToken: Uint8Array): Promise<void> } };
}

export interface AliveAttempt {
  /** When the last heartbeat was sent that Temporal answered (epoch ms); the start of the attempt counts as one. */
  answeredAtMs(): number;
  stop(): void;
}

/**
 * Says that the attempt lives, until `stop`. With `asking`, each time by a request of its own: the SDK's heartbeat tells
 * nobody whether it arrived, and a worker cut off from Temporal must find out before another attempt is at work.
 */
export function stayAlive(
  context: AttemptContext,
  asking: boolean,
  now: () => number,
): AliveAttempt {
  let answeredAtMs = now();
  const ask = async (): Promise<void> => {
    const sentMs = now();
    try {
      await context.client.activity.heartbeat(context.info.taskToken);
    } catch (error) {
      // The attempt was given up: whatever it still wants to write, another one decides about now.
      if (error instanceof ActivityNotFoundError) answeredAtMs = -Infinity;
      if (!isAnswer(error)) return;
    }
    if (answeredAtMs !== -Infinity) answeredAtMs = Math.max(answeredAtMs, sentMs);
  };
  // At once, too: between Temporal's start of the attempt and this one the process may have been frozen.
  if (asking) void ask();
  const timer = setInterval(() => {
    context.heartbeat();
    if (asking && answeredAtMs !== -Infinity) void ask();
  }, heartbeatEveryMs);
  return {
    answeredAtMs: () => answeredAtMs,
    stop: () => {
      clearInterval(timer);
    },
  };
}

/** Told to stop is told, too: whether the step heeds it is decided by the cancellation it gets. */
function isAnswer(error: unknown): boolean {
  return (
    error instanceof ActivityCancelledError ||
    error instanceof ActivityPausedError ||
    error instanceof ActivityResetError
  );
}
