/** Puts a fault before a step, once or until it is lifted, and sees to it that the user can read what it does. */
import type { Fault } from './faults.ts';
import type { Row } from './rows.ts';
import { queryPauseMs, type Story, type Tamper } from './story.ts';

export interface Met {
  hits: () => number;
  lift: () => void;
}

/** `once`: the first request that meets it. `lasting`: every one until `lift`. */
export function meet(story: Story, row: Row, fault: Fault, lasting: boolean): Met {
  const met =
    fault.kind === 'proxmox'
      ? onProxmox(story, row, fault, lasting)
      : onKubernetes(story, row, fault, lasting);
  story.tamper(row, met.tamper);
  return met;
}

const anyRead = { method: 'GET', path: /./ } as const;

function onProxmox(
  { world: { simulator } }: Story,
  { proxmox }: Row,
  fault: Extract<Fault, { kind: 'proxmox' }>,
  lasting: boolean,
): Met & { tamper: Tamper } {
  if (proxmox === null) throw new Error('the step asks nothing of Proxmox VE');
  const { method, path } = fault.request === 'main' ? proxmox : anyRead;
  const upload = path.source.includes('upload') ? fault.uploadAction : undefined;
  const action = upload ?? fault.action;
  const { faults } = simulator;
  const pushed: ReturnType<typeof faults.push>[] = [];
  let lifted = false;
  const remove = (rule: (typeof pushed)[number]): void => {
    if (faults.rules.includes(rule)) faults.rules.splice(faults.rules.indexOf(rule), 1);
  };
  const hits = (): number => pushed.reduce((sum, rule) => sum + rule.hits, 0);
  return {
    hits,
    lift: () => {
      lifted = true;
      for (const rule of pushed) remove(rule);
    },
    tamper: async (_visit, go) => {
      if (lifted || (!lasting && hits() > 0)) return go();
      const rule = faults.push({ method, path, times: lasting ? Infinity : 1, action });
      pushed.push(rule);
      try {
        return await go();
      } finally {
        remove(rule);
      }
    },
  };
}

function onKubernetes(
  { world: { records } }: Story,
  { kubernetes }: Row,
  { fault }: Extract<Fault, { kind: 'kubernetes' }>,
  lasting: boolean,
): Met & { tamper: Tamper } {
  let hits = 0;
  let lifted = false;
  return {
    hits: () => hits,
    lift: () => {
      lifted = true;
    },
    tamper: async (_visit, go) => {
      const over = (): boolean => lifted || (!lasting && hits > 0);
      if (over()) return go();
      records.faultFor = (call) => {
        if (call !== kubernetes || over()) return undefined;
        hits += 1;
        return fault;
      };
      try {
        return await go();
      } finally {
        records.faultFor = () => undefined;
      }
    },
  };
}

/** What the user read while a fault lasted; `null`: the story went on in spite of it. */
export type Read = { reason: string; waitingFor: string | null } | null;

/**
 * Lets a fault last until the status says so, then lifts it. Fails when the story neither goes on nor says why; `over`
 * tells that it came to its end.
 */
export async function lastAndLift(
  story: Story,
  { step }: Row,
  fault: Fault,
  met: Met,
  over: () => boolean,
): Promise<Read> {
  await story.until(() => met.hits() > 0 || over(), `${step} meets «${fault.name}»`);
  let read: Read = null;
  const readIt = async (): Promise<boolean> => {
    read = await readTrouble(story, step, fault);
    return read !== null || over();
  };
  await story.until(readIt, `the status says why ${step} does not go on`, queryPauseMs);
  met.lift();
  return read;
}

/**
 * The trouble with one of the fault's reasons, as the status or, where that itself cannot be written, the query `state`
 * tells it. Whatever is told, the query says what is waited for.
 */
async function readTrouble(story: Story, step: Row['step'], fault: Fault): Promise<Read> {
  if (story.ended()) return null;
  const known: readonly string[] = fault.reasons;
  const told = story
    .status()
    ?.conditions.find(
      (one) => known.includes(one.reason) && /\(\w+, attempt \d+/.test(one.message),
    );
  // Without these no status is made, or none is written; and an object that is gone has none.
  const untold =
    step === 'claimProxy' || step === 'publishStatus' || story.world.records.object === null;
  if (told === undefined && !untold) return null;
  const { message, waitingFor } = await story.state();
  if (told !== undefined && waitingFor !== null) return { reason: told.reason, waitingFor };
  if (!untold || waitingFor === null || !message.includes(step)) return null;
  return { reason: waitingFor, waitingFor };
}
