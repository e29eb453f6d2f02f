import {
  capturedAt,
  type Capture,
  type CapturedRequest,
  type CapturedResponse,
} from './captures.ts';
import type { Certificates } from '../certificates.ts';
import { openLab, type Lab } from './lab.ts';
import { compareAnswer, contextOf } from './compare.ts';
import { replayDenied, replayFetches } from './nodeClient.ts';
import { replayBlocked, replayRace } from './observations.ts';
import { replayPaused, replayPlain, replayRaw } from './rawReplay.ts';
import { record, type Recorder } from './timeline.ts';
import { differences, normaliseText, type NormaliseContext } from './normalise.ts';
import { encodeRequest, SECRET, type Reaction } from './wire.ts';

/** One step of a session: an exchange to replay, or a set-up between two of them. */
export type Step =
  | string
  | { replay: string; secret?: string; lastFirst?: true; withoutTask?: true }
  | { setup: string; run: (lab: Lab) => Promise<void> }
  /** From here on a captured timeline is compared with what can be seen. */
  | { watch: string };

/** Exchanges that belong together: one cluster, one history. */
export interface Session {
  title: string;
  /** File name, or path. */
  fixture: string;
  /** Before the first exchange. */
  start: string;
  steps: readonly Step[];
}

export type Verdict =
  | { name: string; verdict: 'reproduced' }
  | { name: string; verdict: 'differ'; differences: readonly string[] }
  | { name: string; verdict: 'exempt'; reason: string };

/** Replays one session; a set-up that fails makes everything after it differ, and says so. */
export async function replaySession(
  session: Session,
  captures: ReadonlyMap<string, Capture>,
  tls: Certificates,
): Promise<Verdict[]> {
  const lab = await openLab(session.fixture, Date.parse(session.start), tls);
  const verdicts: Verdict[] = [];
  const recorders: Recorder[] = [];
  let broken: string | null = null;
  const judge = (name: string, found: readonly string[]): void => {
    if (found.length === 0) verdicts.push({ name, verdict: 'reproduced' });
    else {
      const all = broken === null ? found : [broken, ...found];
      verdicts.push({ name, verdict: 'differ', differences: all });
    }
  };
  try {
    for (const step of session.steps) {
      if (typeof step === 'object' && 'watch' in step) {
        const timeline = captures.get(step.watch);
        if (timeline?.kind !== 'timeline') continue;
        recorders.push(record(lab, step.watch, timeline.timeline));
        continue;
      }
      if (typeof step === 'object' && 'setup' in step) {
        try {
          await step.run(lab);
        } catch (error) {
          broken = `set-up «${step.setup}» failed: ${error instanceof Error ? error.message : String(error)}`;
        }
        continue;
      }
      const name = typeof step === 'string' ? step : step.replay;
      const capture = captures.get(name);
      if (capture === undefined) continue;
      const options = typeof step === 'string' ? {} : step;
      judge(name, await replayOne(lab, capture, options, tls.ca));
    }
    await lab.clock.advanceTo(Math.max(0, ...recorders.map(({ endsAt }) => endsAt)));
    for (const recorder of recorders) judge(recorder.name, recorder.differences());
  } finally {
    await lab.close();
  }
  return verdicts;
}

async function replayOne(
  lab: Lab,
  capture: Capture,
  options: { secret?: string; lastFirst?: true },
  ca: string,
): Promise<string[]> {
  const secret = options.secret ?? SECRET;
  const at = capturedAt(capture);
  if (at !== null) await lab.clock.advanceTo(at);
  switch (capture.kind) {
    case 'exchange':
      return replayExchange(lab, capture.request, capture.response, {
        secret,
        elapsed: capture.elapsedSeconds ?? null,
      });
    case 'sequence':
      return replaySequence(lab, capture);
    case 'concurrent':
      return replayConcurrent(lab, capture, options.lastFirst === true);
    case 'raw':
      return replayRaw(lab, capture);
    case 'plain':
      return replayPlain(lab, capture);
    case 'paused':
      return replayPaused(lab, capture);
    case 'timeline':
      return ['no session watches it'];
    case 'race':
      return replayRace(lab, capture);
    case 'fetches':
      return replayFetches(lab, capture, ca);
    case 'denied':
      return replayDenied(lab, capture, ca);
    case 'blocked':
      return replayBlocked(lab, capture, ca);
    case 'other':
      return [capture.why];
    default:
      return ['unknown kind of capture'];
  }
}

async function replayExchange(
  lab: Lab,
  request: CapturedRequest,
  response: CapturedResponse,
  options: { secret: string; elapsed: number | null },
): Promise<string[]> {
  await waitForTask(lab, request, response);
  const bytes = encodeRequest(request, {
    text: (text) => rewrite(lab, text),
    secret: options.secret,
  });
  const { reaction, elapsedSeconds } = await lab.exchange(nodeOf(lab, request), bytes);
  learnUpid(lab, response.body ?? '', reaction);
  return [
    ...compareAnswer(lab, request, response, reaction),
    ...compareElapsed(options.elapsed, elapsedSeconds),
  ];
}

/** The capturing client polled until the task had ended; so do we. */
async function waitForTask(
  lab: Lab,
  request: CapturedRequest,
  response: CapturedResponse,
): Promise<void> {
  const captured = /\/tasks\/([^/]+)\/(status|log)$/.exec(request.path)?.[1];
  if (captured === undefined) return;
  const finished = /"status":"stopped"|TASK (OK|ERROR|WARNINGS)/.test(response.body ?? '');
  const upid = lab.upids.get(decodeURIComponent(captured));
  if (finished && upid !== undefined) await lab.ended(upid);
}

function nodeOf(lab: Lab, request: CapturedRequest): string {
  return request.api ?? Object.keys(lab.simulator.urls)[0] ?? '';
}

/** Captured UPIDs become ours, plain or percent-encoded. */
function rewrite(lab: Lab, text: string): string {
  let result = text;
  for (const [captured, simulated] of lab.upids) {
    result = result
      .replaceAll(captured, simulated)
      .replaceAll(
        encodeURIComponent(captured).replaceAll('!', '%21'),
        encodeURIComponent(simulated),
      )
      .replaceAll(encodeURIComponent(captured), encodeURIComponent(simulated));
  }
  return result;
}

function learnUpid(lab: Lab, capturedBody: string, reaction: Reaction): void {
  if (reaction === 'closed') return;
  const captured = /"data":"(UPID:[^"]+)"/.exec(capturedBody)?.[1];
  const simulated = /"data":"(UPID:[^"]+)"/.exec(reaction.body)?.[1];
  if (captured !== undefined && simulated !== undefined) lab.upids.set(captured, simulated);
}

/** Long waits (a refused login, a silent agent, a lock) are part of the behaviour. */
function compareElapsed(captured: number | null, simulated: number): string[] {
  if (captured === null || (captured < 2 && simulated < 2)) return [];
  const close = Math.abs(captured - simulated) <= Math.max(2, captured * 0.4);
  return close ? [] : [`took ${captured} s, simulated ${simulated.toFixed(1)} s`];
}

async function replaySequence(
  lab: Lab,
  capture: Extract<Capture, { kind: 'sequence' }>,
): Promise<string[]> {
  const start = lab.clock.now();
  const found: string[] = [];
  for (const exchange of capture.exchanges) {
    await lab.clock.advanceTo(start + exchange.t * 1000 - agentWait(exchange.response));
    const differing = await replayExchange(lab, exchange.request, exchange.response, {
      secret: SECRET,
      elapsed: null,
    });
    found.push(...differing.map((line) => `${exchange.t} ${exchange.step}: ${line}`));
  }
  return found;
}

/** `t` is when the answer came; a silent agent takes three seconds to give one. */
function agentWait(response: CapturedResponse): number {
  return (response.statusLine ?? '').includes('QEMU guest agent is not running') ? 3000 : 0;
}

/** One after the other, the last one first, a tenth of a second apart: how some races went. */
async function inTurn(
  lab: Lab,
  requests: readonly { node: string; bytes: Buffer }[],
): Promise<{ reaction: Reaction; elapsedSeconds: number }[]> {
  const answers: { reaction: Reaction; elapsedSeconds: number }[] = [];
  for (const { node, bytes } of requests.toReversed()) {
    answers.unshift(await lab.exchange(node, bytes));
    await lab.advance(0.05);
  }
  return answers;
}

/** Who of several wins is chance: outcomes are compared as a whole. */
async function replayConcurrent(
  lab: Lab,
  capture: Extract<Capture, { kind: 'concurrent' }>,
  lastFirst: boolean,
): Promise<string[]> {
  const requests = capture.concurrent.map(({ request }) => ({
    node: nodeOf(lab, request),
    bytes: encodeRequest(request, { text: (text) => rewrite(lab, text) }),
  }));
  const answers = lastFirst ? await inTurn(lab, requests) : await lab.exchangeAll(requests);
  const expected: unknown[] = [];
  const actual: unknown[] = [];
  for (const [index, { request, response, taskStatus, taskLog }] of capture.concurrent.entries()) {
    const context = contextOf(lab, request);
    expected.push({
      request: `${request.method} ${request.path}`,
      status: response.statusLine,
      exit: taskStatus?.exitstatus ?? null,
      log: (taskLog ?? []).map(({ t }) => normaliseRace(t, request, context)),
    });
    const reaction = answers[index]?.reaction ?? 'closed';
    learnUpid(lab, response.body ?? '', reaction);
    const upid =
      reaction === 'closed' ? undefined : /"data":"(UPID:[^"]+)"/.exec(reaction.body)?.[1];
    if (upid !== undefined) await lab.ended(upid);
    const task = upid === undefined ? undefined : lab.simulator.core.tasks.find(upid);
    actual.push({
      request: `${request.method} ${request.path}`,
      status:
        reaction === 'closed'
          ? 'closed'
          : `HTTP/${reaction.version} ${reaction.status} ${reaction.reason}`,
      exit: task?.exitstatus ?? null,
      log: (task?.log ?? []).map((line) => normaliseRace(line, request, context)),
    });
  }
  const sorted = (list: unknown[]): unknown[] =>
    list
      .map((item) => JSON.stringify(item))
      .sort()
      .map((item): unknown => JSON.parse(item));
  return differences(sorted(expected), sorted(actual), 'outcomes');
}

/** Which of several newids got which turn is chance, too. */
function normaliseRace(line: string, request: CapturedRequest, context: NormaliseContext): string {
  const newid = request.params?.['newid'];
  const text = normaliseText(line, context);
  return typeof newid === 'number' ? text.replaceAll(String(newid), '<newid>') : text;
}
