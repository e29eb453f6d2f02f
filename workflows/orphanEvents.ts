/** What a round of the collection tells: Events of ProviderHealth, each once. Pure. */
import type { CollectionReport } from './contract/collection.ts';
import type { ProxyEvent } from './contract/proxy.ts';
import { seedKey } from './orphanRound.ts';

/** Orphans that get an Event of their own; the report of the round names them all. */
const maxEvents = 10;

/** What is new in `now` against the round before. */
export function newsOf(before: CollectionReport, now: CollectionReport): ProxyEvent[] {
  const alarm = now.alarm !== null && now.alarm.id !== before.alarm?.id ? now.alarm : null;
  return [
    ...(alarm === null ? [] : [held(alarm)]),
    ...(before.alarm !== null && now.alarm === null ? [over(before.alarm.id)] : []),
    ...limited(found(before, now)),
  ];
}

/** What was given to its owner's run or deleted. */
export function collected(things: readonly string[]): ProxyEvent[] {
  return limited(
    things.map((message) => {
      return { type: 'Normal', reason: 'OrphanCollected', action: 'Collect', message };
    }),
  );
}

function found(before: CollectionReport, now: CollectionReport): ProxyEvent[] {
  const vms = now.vms
    .filter((vm) => vm.rounds === 1)
    .map(({ vmid, node, name, owner, outlook }) => {
      const proxy = `${owner.namespace}/${owner.name}, UID ${owner.uid}`;
      return `VM ${vmid} on ${node} (${name}) has no Proxy (${proxy}); it ${outlook}`;
    });
  const known = new Set(before.seeds.map(seedKey));
  const seeds = now.seeds
    .filter((seed) => !known.has(seedKey(seed)))
    .map(({ file, node, outlook }) => `seed ${file} on ${node} has no Proxy; it ${outlook}`);
  return [...vms, ...seeds].map((message) => {
    return { type: 'Warning', reason: 'OrphanFound', action: 'Collect', message };
  });
}

function held({ id, kind, message }: NonNullable<CollectionReport['alarm']>): ProxyEvent {
  const remedy = `if they may be removed, set confirmAbsence: ${id} in the providers config`;
  const text = `${kind} ${id}: ${message}; nothing is collected; ${remedy}`;
  return { type: 'Warning', reason: 'CollectionHeld', action: 'Collect', message: text };
}

function over(id: string): ProxyEvent {
  const message = `alarm ${id} is over`;
  return { type: 'Normal', reason: 'CollectionResumed', action: 'Collect', message };
}

function limited(events: ProxyEvent[]): ProxyEvent[] {
  const first = events[maxEvents];
  if (first === undefined) return events;
  const more = { ...first, message: `and ${events.length - maxEvents} more` };
  return [...events.slice(0, maxEvents), more];
}
