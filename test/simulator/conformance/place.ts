import { capturedAt, type Capture } from './captures.ts';
import type { Session, Step } from './replay.ts';

/** How long before and after a session's own exchanges something still belongs to it. */
const MARGIN_MS = 30_000;

export function nameOf(step: Step): string | null {
  if (typeof step === 'string') return step;
  if ('watch' in step) return step.watch;
  return 'replay' in step ? step.replay : null;
}

/**
 * Completes the sessions with the captures they do not name: what a task of theirs came to stands right behind it, and
 * everything else at its place in time, because the captures of a set share one history.
 */
export function placeAll(
  sessions: readonly Session[],
  captures: ReadonlyMap<string, Capture>,
  isExempt: (name: string) => boolean,
): { sessions: Session[]; unplaced: Capture[] } {
  const placed = new Set(sessions.flatMap((session) => session.steps.map(nameOf)));
  const completed = sessions.map((session) => ({
    ...session,
    steps: session.steps.flatMap((step) => withTask(step, captures, placed)),
  }));
  for (const session of completed) for (const step of session.steps) placed.add(nameOf(step));
  const rest = [...captures.values()]
    .filter(({ name }) => !placed.has(name) && !isExempt(name))
    .sort((a, b) => (capturedAt(a) ?? 0) - (capturedAt(b) ?? 0) || (a.name < b.name ? -1 : 1));
  const unplaced = rest.filter((capture) => {
    const home = completed.find((session) => covers(session, capture, captures));
    if (home !== undefined) insertByTime(home, capture, captures);
    return home === undefined;
  });
  return { sessions: completed, unplaced };
}

function withTask(
  step: Step,
  captures: ReadonlyMap<string, Capture>,
  placed: ReadonlySet<string | null>,
): Step[] {
  const name = nameOf(step);
  if (name === null) return [step];
  if (typeof step === 'object' && 'replay' in step && step.withoutTask === true) return [step];
  const followers = [`${name}-task-status`, `${name}-task-log`];
  return [step, ...followers.filter((follower) => captures.has(follower) && !placed.has(follower))];
}

export function isClusterCapture(capture: Capture): boolean {
  return capture.kind === 'exchange' && capture.request.api !== undefined;
}

function timeOf(step: Step, captures: ReadonlyMap<string, Capture>): number | null {
  const capture = captures.get(nameOf(step) ?? '');
  return capture === undefined ? null : capturedAt(capture);
}

function covers(
  session: Session,
  capture: Capture,
  captures: ReadonlyMap<string, Capture>,
): boolean {
  const time = capturedAt(capture);
  if (time === null || isClusterCapture(capture) !== session.fixture.includes('cluster'))
    return false;
  const times = session.steps
    .map((step) => timeOf(step, captures))
    .filter((entry) => entry !== null);
  if (times.length === 0) return false;
  return time >= Math.min(...times) - MARGIN_MS && time <= Math.max(...times) + MARGIN_MS;
}

function insertByTime(
  session: { steps: Step[] },
  capture: Capture,
  captures: ReadonlyMap<string, Capture>,
): void {
  const time = capturedAt(capture) ?? 0;
  let index = 0;
  for (const [position, step] of session.steps.entries()) {
    const own = timeOf(step, captures);
    if (own !== null && own <= time) index = position + 1;
  }
  session.steps.splice(index, 0, capture.name);
}
