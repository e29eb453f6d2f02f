/** Tells Proxies that share an ip:port with another one who keeps it (design §7). */
import type { Proxy } from '../../api/proxy.ts';
import { observedRetellMs } from '../../workflows/contract/budgets.ts';
import type { Observed } from '../../workflows/contract/messages.ts';
import type { StepContext, StepDeps } from '../deps.ts';
import { readAgent } from './agentReport.ts';
import { conflictNews, contestedAddresses, keeperOf } from './conflicts.ts';
import type { WatchedVm } from './watched.ts';

export interface ConflictRoundsOptions {
  steps: StepDeps;
  context: StepContext;
  tell: (vm: WatchedVm, news: Observed) => Promise<boolean>;
}

interface Told {
  heldBy: string | null;
  atMs: number;
  tellings: number;
}

/** A decision holds this long, so that a lasting conflict does not ask the agents every round. */
const decisionHoldsMs = 60_000;

/** One per watched provider; it remembers what it told, and tells it again ever more rarely. */
export class ConflictRounds {
  readonly #options: ConflictRoundsOptions;
  readonly #told = new Map<string, Told>();
  readonly #decided = new Map<string, { keeper: string | null; atMs: number }>();

  constructor(options: ConflictRoundsOptions) {
    this.#options = options;
  }

  /** `proxies`: those of all providers; `watched`: whose workflows this watch tells. */
  async round(proxies: readonly Proxy[], watched: readonly WatchedVm[]): Promise<void> {
    const holders = new Map<string, string>();
    const own = new Set(watched.map(({ proxy }) => proxy.metadata.uid));
    const groups = contestedAddresses(proxies).filter((claimants) =>
      claimants.some(({ metadata }) => own.has(metadata.uid)),
    );
    for (const claimants of groups) {
      const keeper = await this.#keeper(claimants);
      for (const { metadata } of claimants) {
        if (metadata.uid !== keeper.metadata.uid) holders.set(metadata.uid, nameOf(keeper));
      }
    }
    if (groups.length === 0) this.#decided.clear();
    for (const vm of watched) {
      if (vm.role === 'serving') await this.#tell(vm, holders.get(vm.proxy.metadata.uid) ?? null);
    }
  }

  async #tell(vm: WatchedVm, heldBy: string | null): Promise<void> {
    const { steps, tell } = this.#options;
    const { uid } = vm.proxy.metadata;
    const news = conflictNews(vm, heldBy);
    if (news === null) {
      this.#told.delete(uid);
      return;
    }
    const nowMs = steps.clock.now();
    const known = this.#told.get(uid);
    const before = known?.heldBy === heldBy ? known : null;
    if (before !== null && nowMs - before.atMs < observedRetellMs(before.tellings)) return;
    if (await tell(vm, news)) {
      this.#told.set(uid, { heldBy, atMs: nowMs, tellings: (before?.tellings ?? 0) + 1 });
    }
  }

  /** All agents are asked at once: one after the other, an address could move in between. */
  async #keeper(claimants: readonly Proxy[]): Promise<Proxy> {
    const nowMs = this.#options.steps.clock.now();
    const key = claimants
      .map(({ metadata }) => metadata.uid)
      .toSorted()
      .join();
    const decided = this.#decided.get(key);
    const [first] = claimants;
    if (first === undefined) throw new Error('nobody claims the address');
    if (decided !== undefined && nowMs - decided.atMs < decisionHoldsMs) {
      return claimants.find(({ metadata }) => metadata.uid === decided.keeper) ?? first;
    }
    const reports = new Map(
      await Promise.all(
        claimants.map(async (proxy) => [proxy.metadata.uid, await this.#reports(proxy)] as const),
      ),
    );
    const keeper = keeperOf(claimants, reports) ?? first;
    this.#decided.set(key, { keeper: keeper.metadata.uid, atMs: nowMs });
    return keeper;
  }

  /** Whether the Proxy's VM reports the address; `null`: it does not tell. */
  async #reports({ spec, status }: Proxy): Promise<boolean | null> {
    const { steps, context } = this.#options;
    const { ip, vmid, node, vmName } = status;
    const provider = status.provider ?? spec.provider ?? null;
    if (ip === null || vmid === null || node === null || vmName === null || provider === null) {
      return null;
    }
    try {
      const report = await readAgent(steps, context, provider, { node, vmid, name: vmName, ip });
      return report.kind === 'address' ? report.ip === ip : null;
    } catch {
      return null;
    }
  }
}

function nameOf({ metadata }: Proxy): string {
  return `${metadata.namespace}/${metadata.name}`;
}
