/**
 * Asks the guests' agents now and then (design §7): every ten minutes, when a probe fails, and after a restart; one at a
 * time per node. What differs from the status is told; what does not adds nothing anywhere.
 */
import {
  agentRecheckMs,
  agentSilenceCheckMs,
  waitBudgets,
} from '../../workflows/contract/budgets.ts';
import type { StepContext, StepDeps } from '../deps.ts';
import { ProbeSchedule } from '../probe/schedule.ts';
import { readAgent, type AgentReport } from './agentReport.ts';
import { conditionOf, type WatchedVm } from './watched.ts';

export interface AgentRoundsOptions {
  steps: StepDeps;
  context: StepContext;
  provider: string;
  /** Tells a Proxy to look afresh. */
  tell: (vm: WatchedVm) => Promise<void>;
  /** The other half of the pass: whether its Secret has changed. */
  checkCloudInit: (vm: WatchedVm) => Promise<void>;
  /** 0 ≤ x < 1. */
  random: () => number;
}

interface Asked {
  vm: WatchedVm;
  silentSinceMs: number | null;
  booting: boolean;
}

/** One per watched provider; asks one VM of a node at a time. */
export class AgentRounds {
  readonly #options: AgentRoundsOptions;
  readonly #schedule = new ProbeSchedule();
  readonly #asked = new Map<string, Asked>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #busyNodes = new Set<string>();
  #first = true;

  constructor(options: AgentRoundsOptions) {
    this.#options = options;
  }

  /** Takes in what the statuses say now. */
  update(watched: readonly WatchedVm[]): void {
    const { steps, random } = this.#options;
    const nowMs = steps.clock.now();
    const added = new Set(
      this.#schedule.keep(
        watched.map(({ key }) => key),
        nowMs,
      ),
    );
    const keys = new Set(watched.map(({ key }) => key));
    for (const key of this.#asked.keys()) if (!keys.has(key)) this.#asked.delete(key);
    for (const vm of watched) {
      const before = this.#asked.get(vm.key);
      if (before === undefined || added.has(vm.key)) {
        this.#asked.set(vm.key, { vm, silentSinceMs: null, booting: false });
        // The line has just asked a new one; after a restart of the operator all are spread.
        const share = this.#first ? random() : 1;
        this.#schedule.ended(vm.key, nowMs + share * this.#scaled(agentRecheckMs));
        continue;
      }
      const restarted = before.vm.power !== 'running' && vm.power === 'running';
      const probeFailed = before.vm.proxy.status.healthy === true && healthIsBad(vm);
      if (restarted) Object.assign(before, { booting: true, silentSinceMs: nowMs });
      before.vm = vm;
      if (restarted || probeFailed) this.#schedule.ended(vm.key, nowMs);
    }
    this.#first = false;
  }

  /** Starts the questions that are due, as far as their nodes are free. */
  start(): void {
    const nowMs = this.#options.steps.clock.now();
    const room = { all: this.#asked.size, slow: this.#asked.size };
    for (const { key } of this.#schedule.take(nowMs, room)) {
      const asked = this.#asked.get(key);
      if (asked === undefined) continue;
      const { node } = asked.vm;
      if (this.#busyNodes.has(node)) {
        this.#schedule.ended(key, nowMs);
        continue;
      }
      this.#busyNodes.add(node);
      const run = this.#ask(asked)
        .catch((error: unknown) => {
          const { log } = this.#options.context;
          log.debug({ err: error, vmid: asked.vm.vmid, node }, 'guest agent not asked');
          return this.#scaled(agentRecheckMs);
        })
        .then((pauseMs) => {
          this.#busyNodes.delete(node);
          this.#underWay.delete(run);
          this.#schedule.ended(key, this.#options.steps.clock.now() + pauseMs);
        });
      this.#underWay.add(run);
    }
  }

  /** Waits for the questions under way. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #scaled(ms: number): number {
    return ms * this.#options.steps.pace.budgetScale;
  }

  /** One question; returns the pause until the next one (ms). */
  async #ask(asked: Asked): Promise<number> {
    const { steps, context, provider, tell, checkCloudInit } = this.#options;
    const { vm } = asked;
    const recheckMs = this.#scaled(agentRecheckMs);
    if (vm.power !== 'running') return recheckMs;
    if (!asked.booting) await checkCloudInit(vm);
    const report = await readAgent(steps, context, provider, vm);
    if (report.kind === 'silent') asked.silentSinceMs ??= steps.clock.now();
    else Object.assign(asked, { silentSinceMs: null, booting: false });
    const silentMs = asked.silentSinceMs === null ? 0 : steps.clock.now() - asked.silentSinceMs;
    const patienceMs = this.#scaled(waitBudgets.agent);
    if (isNews(vm, report, silentMs >= patienceMs)) await tell(vm);
    if (report.kind !== 'silent' || silentMs >= patienceMs) {
      asked.booting = false;
      return recheckMs;
    }
    return asked.booting ? steps.pace.agentMs : this.#scaled(agentSilenceCheckMs);
  }
}

function healthIsBad({ proxy }: WatchedVm): boolean {
  return proxy.status.healthy === false;
}

/** Whether the status says something else than the agent. Silence counts when it has lasted. */
export function isNews(vm: WatchedVm, report: AgentReport, silentLong: boolean): boolean {
  const shownSilent = conditionOf(vm.proxy, 'AgentReachable')?.status === 'False';
  // A replacement's agent has no condition; its address is all there is to compare.
  const silenceIsNews = vm.role === 'serving' && !shownSilent;
  if (report.kind === 'anotherVm') return false;
  if (report.kind === 'address') {
    return report.ip !== vm.ip || (vm.role === 'serving' && shownSilent);
  }
  return silenceIsNews && (report.kind !== 'silent' || silentLong);
}
