/** What many stories have in common. */
import { waitHere } from './heldSteps.ts';
import type { Story } from './workflowHarness.ts';

/** Lets the Proxy become Ready at its first address. */
export async function ready({ world, until, health }: Story): Promise<void> {
  await until(() => world.status?.ip === '192.0.2.10', 'an address');
  await health(true);
  await until(() => world.status?.phase === 'Ready', 'Ready');
}

/** The deletion of a Proxy that was Ready is paused when its finalizer is taken off; nobody has told the run yet. */
export async function letGoWhilePaused(story: Story): Promise<void> {
  const { world } = story;
  await ready(story);
  await story.changed({ paused: true });
  await story.deleted();
  await story.until(() => world.status?.phase === 'Deleting', 'the deletion');
  world.desired = null;
}

/** A gate that a fake step waits at until the test opens it. */
export interface Gate {
  open: () => void;
  reached: () => boolean;
  enter: () => Promise<void>;
  /** Stops the first one that comes; later ones pass. */
  enterOnce: () => Promise<void>;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  let arrived = false;
  const enter = (): Promise<void> => {
    arrived = true;
    return waitHere(promise);
  };
  return {
    open: resolve,
    reached: () => arrived,
    enter,
    enterOnce: () => (arrived ? Promise.resolve() : enter()),
  };
}
