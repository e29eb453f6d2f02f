/** Shows what a round of the collection found: log, Events and status of the ProviderHealth, metric. */
import type { PublishOrphansInput } from '../workflows/contract/collection.ts';
import type { Step } from './deps.ts';
import type { ShowOrphans } from './kubernetes/orphanBoard.ts';

/** Where the collection is shown. */
export interface OrphanBoard {
  show: ShowOrphans;
  /** The gauge; `null` takes the provider out of it. */
  count(provider: string, counts: { vm: number; seed: number; leftover: number } | null): void;
  /** Pauses the Schedule of a provider until somebody serves it again; no failure when there is none. */
  restSchedule(provider: string): Promise<void>;
}

/** The step over a board. Repeated, it shows the same; an Event that is told twice counts twice. */
export function publishOrphans(board: OrphanBoard): Step<PublishOrphansInput, void> {
  return async (deps, context, input) => {
    const { provider, vms, seeds, leftovers, alarm, blind, problem, events, ended } = input;
    const { log } = context;
    if (ended) {
      board.count(provider, null);
      await board.restSchedule(provider);
      log.info({ provider }, 'collection of orphans rests: nobody serves the provider');
      return;
    }
    for (const { type, reason, message } of events) {
      if (type === 'Warning') log.warn({ provider, reason }, `collection: ${message}`);
      else log.info({ provider, reason }, `collection: ${message}`);
    }
    const counts = { vm: vms, seed: seeds, leftover: leftovers };
    if (problem === null) board.count(provider, counts);
    const lastRound = new Date(deps.clock.now()).toISOString();
    const message = problem ?? alarm?.message ?? '';
    const shown = { vms, seeds, leftovers, message, lastRound };
    await board.show(provider, blind ? shown : { ...shown, alarm: alarm?.id ?? null }, events);
    log.debug({ provider, ...counts, alarm: alarm?.id, problem }, 'collection round');
  };
}
