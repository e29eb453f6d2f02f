/** The running side of one Proxy's workflow: runs steps, notices news, keeps the status published. */
import {
  condition,
  isCancellation,
  log,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { acceptClaim } from './accept.ts';
import { defaultRequestBoundMs, retryDelayMs } from './contract/budgets.ts';
import type { AwaitedLocks } from './contract/steps.ts';
import type { StepName } from './contract/stepTable.ts';
import { detailsOf } from './details.ts';
import { readFailure, type StepFailure } from './failures.ts';
import { searchAttributesOf } from './searchAttributes.ts';
import { explainUnserved, noteCloudInit, noteProvider } from './objectTroubles.ts';
import { troublesOf, type ProxyState } from './state.ts';
import { statusOf } from './status.ts';
import { runStep, waitMsOf, type StepInput, type StepResult } from './steps.ts';
import { nextTrouble } from './trouble.ts';

/** A step failed; the main loop makes it the state's trouble. */
export class StepFailed extends Error {
  readonly step: StepName;
  readonly failure: StepFailure;
  /** As `Trouble.subject`. */
  readonly subject: string;

  constructor(step: StepName, failure: StepFailure, subject: string = step) {
    super(failure.message);
    this.name = 'StepFailed';
    this.step = step;
    this.failure = failure;
    this.subject = subject;
  }
}

export interface StepSetting {
  provider?: string;
  requestBoundMs?: number;
  waitMs?: number;
  summary: string;
}

export interface Life {
  readonly state: ProxyState;
  /** Runs one step and records its time. Throws StepFailed. */
  step<N extends StepName>(
    name: N,
    input: StepInput<N>,
    setting: StepSetting,
  ): Promise<StepResult<N>>;
  /** Reads the object again. `false`: it was not read yet, and the run is to continue as new first. */
  readAgain(): Promise<boolean>;
  /** Resolves when the status as it is now has been written (or the object is gone). */
  published(): Promise<void>;
  /** No step of the background is under way: a run that was stopped may continue as new. */
  idle(): boolean;
  /** Idle, and the object as last read is the newest known. */
  quiet(): boolean;
  /** Quiet, but for what failed and waits for its repetition: a run that is over does not wait for that. */
  resting(): boolean;
  /** The background starts nothing any more; what is under way ends by itself. */
  stop(): void;
}

/** Starts the two background loops (reading the object, publishing the status) over `state`. */
export function createLife(state: ProxyState): Life {
  const background = {
    stopped: false,
    reading: false,
    publishing: false,
    pausing: 0,
    lastPublished: '',
  };

  async function step<N extends StepName>(
    name: N,
    input: StepInput<N>,
    setting: StepSetting,
  ): Promise<StepResult<N>> {
    const startedMs = Date.now();
    const subject = subjectOf(name, input);
    const waitMs = setting.waitMs ?? waitMsOf(name);
    state.step = name;
    state.stepSinceMs = startedMs;
    state.stepUntilMs = waitMs === 0 ? null : startedMs + waitMs;
    showDetails(state);
    try {
      const result = await runStep(name, withLocks(input, state), {
        provider: setting.provider ?? '',
        requestBoundMs: setting.requestBoundMs ?? defaultRequestBoundMs,
        waitMs,
        summary: setting.summary,
      });
      state.lineTimings[name] = addSeconds(state.lineTimings[name] ?? 0, Date.now() - startedMs);
      if (state.trouble?.subject === subject) state.trouble = null;
      if (state.removalTrouble?.subject === subject) state.removalTrouble = null;
      if (state.markTrouble?.subject === subject) state.markTrouble = null;
      for (const removal of state.removals) {
        if (removal.trouble?.subject === subject) removal.trouble = null;
      }
      return result;
    } catch (error) {
      const failure = explainUnserved(state, setting.provider, readFailure(error));
      throw new StepFailed(name, failure, subject);
    } finally {
      state.step = null;
      state.stepSinceMs = null;
      state.stepUntilMs = null;
      showDetails(state);
    }
  }

  /** With the finalizer gone the object goes: there is nothing left to read. */
  function readWanted(): boolean {
    return state.refreshWanted && !state.released;
  }

  function unpublished(): boolean {
    return state.events.length > 0 || JSON.stringify(statusOf(state)) !== background.lastPublished;
  }

  function noteKubernetes(name: StepName, failure: StepFailure): void {
    state.kubernetesTrouble = nextTrouble(
      state.kubernetesTrouble,
      name,
      failure,
      Date.now(),
      false,
    );
    showDetails(state);
  }

  function kubernetesAnswered(name: StepName): void {
    if (state.kubernetesTrouble?.step !== name) return;
    state.kubernetesTrouble = null;
    showDetails(state);
  }

  async function publishLoop(): Promise<void> {
    for (let failures = 0; ;) {
      await condition(() => background.stopped || (state.desired !== null && unpublished()));
      if (background.stopped) return;
      const status = statusOf(state);
      // Taken now: parts of a status are parts of the state, which goes on changing while it is being written.
      const text = JSON.stringify(status);
      const events = state.events.splice(0);
      background.publishing = true;
      try {
        // What is worth publishing is worth showing; a run that continues another one starts without details.
        showDetails(state);
        showSearchAttributes(state);
        const { found } = await runStep(
          'publishStatus',
          { ref: state.ref, status, events },
          mainCall(`publish ${status.phase}`),
        );
        background.lastPublished = text;
        failures = 0;
        kubernetesAnswered('publishStatus');
        if (!found && state.objectFound && !state.released) state.refreshWanted = true;
      } catch (error) {
        const failure = readFailure(error);
        state.events.unshift(...events);
        failures += 1;
        noteKubernetes('publishStatus', failure);
        log.warn('status not published', { reason: failure.facts.reason, attempt: failures });
        await pause(failures);
      } finally {
        background.publishing = false;
      }
    }
  }

  async function readLoop(): Promise<void> {
    for (let failures = 0; ;) {
      await condition(() => background.stopped || readWanted());
      if (background.stopped) return;
      state.refreshWanted = false;
      background.reading = true;
      try {
        const claim = await runStep(
          'claimProxy',
          { ref: state.ref },
          mainCall('read and claim the Proxy'),
        );
        failures = 0;
        kubernetesAnswered('claimProxy');
        acceptClaim(state, claim);
        // Its status may have been edited by hand; writing what is there already sends nothing.
        background.lastPublished = '';
        noteCloudInit(state);
        noteProvider(state);
      } catch (error) {
        const failure = readFailure(error);
        state.refreshWanted = true;
        failures += 1;
        noteKubernetes('claimProxy', failure);
        log.warn('object not read', { reason: failure.facts.reason, attempt: failures });
        await pause(failures);
      } finally {
        background.reading = false;
      }
    }
  }

  async function readAgain(): Promise<boolean> {
    state.refreshWanted = true;
    const read = (): boolean => !background.reading && !readWanted();
    await condition(() => read() || workflowInfo().continueAsNewSuggested);
    return read();
  }

  /** Before a repetition. `retry` ends it, and so does the end of the run. */
  async function pause(failures: number): Promise<void> {
    const { wakings } = state;
    background.pausing += 1;
    const over = (): boolean => background.stopped || state.wakings !== wakings;
    await condition(over, retryDelayMs(failures));
    background.pausing -= 1;
  }

  /** Nothing of the background is under way but what failed and waits for its repetition. */
  function resting(): boolean {
    const { reading, publishing, pausing } = background;
    return Number(reading) + Number(publishing) === pausing && (reading || !readWanted());
  }

  publishLoop().catch(unlessCancelled);
  readLoop().catch(unlessCancelled);
  return {
    state,
    step,
    readAgain,
    published: () =>
      condition(() => !background.publishing && (state.desired === null || !unpublished())),
    idle: () => !background.reading && !background.publishing,
    quiet: () => !background.reading && !background.publishing && !readWanted(),
    resting,
    stop: () => {
      background.stopped = true;
    },
  };
}

/** The input is left as it is while no lock is waited for. */
function withLocks<Input>(input: Input, state: ProxyState): Input & AwaitedLocks {
  const awaitedLocks = troublesOf(state)
    .map(({ locked }) => locked)
    .filter((locked) => locked !== null)
    .map(({ vmid, budgetFromMs }) => ({ vmid, budgetFromMs }));
  return { ...input, ...(awaitedLocks.length === 0 ? {} : { awaitedLocks }) };
}

/** One kind of task may go well again and again while another one fails: each has a count of its own. */
function subjectOf(name: StepName, input: object | undefined): string {
  if (input && 'existingOnly' in input) return `${name} observed`;
  return input && 'kind' in input && typeof input.kind === 'string'
    ? `${name} ${input.kind}`
    : name;
}

/** Seconds with one decimal, also as a sum. */
function addSeconds(seconds: number, ms: number): number {
  return Math.round(seconds * 10 + ms / 100) / 10;
}

/** A cancelled run ends with its main loop; anything else is a fault and must stop the task. */
function unlessCancelled(error: unknown): void {
  if (!isCancellation(error)) throw error;
}

function mainCall(summary: string): Parameters<typeof runStep>[2] {
  return { provider: '', requestBoundMs: defaultRequestBoundMs, waitMs: 0, summary };
}

function showDetails(state: ProxyState): void {
  setCurrentDetails(detailsOf(state, Date.now(), workflowInfo().namespace));
}

function showSearchAttributes(state: ProxyState): void {
  if (!state.searchAttributes) return;
  const pairs = searchAttributesOf(state);
  const text = JSON.stringify(pairs.map((pair) => pair.value));
  if (text === state.shownSearchAttributes) return;
  state.shownSearchAttributes = text;
  upsertSearchAttributes(pairs);
}
