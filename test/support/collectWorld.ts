/** A provider as the rounds of the collection see it, and what they did to it. */
import { ApplicationFailure } from '@temporalio/common';
import type {
  Census,
  CollectionSettings,
  ListSeedsInput,
  OrphanSeed,
  OrphanVm,
  PublishOrphansInput,
  SettledLeftover,
  SignalOrphanInput,
} from '../../workflows/contract/collection.ts';
import type { FailureFacts } from '../../workflows/contract/errors.ts';
import type { DeleteSeedInput } from '../../workflows/contract/removalSteps.ts';
import type { Steps } from '../../workflows/contract/stepTable.ts';

export const lostOwner = {
  namespace: 'egress',
  name: 'lost',
  uid: '99999999-1111-4111-8111-111111111111',
};

export function lostVm(vmid = 300, changes: Partial<OrphanVm> = {}): OrphanVm {
  const name = 'proxy-lost-abcdef-99999999-000000';
  return { vmid, node: 'pve1', name, owner: lostOwner, kept: null, ...changes };
}

export function lostSeed(node = 'pve1', changes: Partial<OrphanSeed> = {}): OrphanSeed {
  const vmName = 'proxy-lost-abcdef-99999999-000000';
  return {
    node,
    storage: 'proxy-seeds',
    file: `${vmName}-seed.iso`,
    vmName,
    uidPrefix: '99999999',
    heldBy: null,
    examined: false,
    ...changes,
  };
}

/** A fake of the steps of `collectOrphans` over one provider. */
export class CollectWorld {
  settings: CollectionSettings = {
    mode: 'delete',
    graceMs: 0,
    confirmAbsence: null,
    requestBoundMs: 30_000,
  };
  managed = 20;
  orphans: OrphanVm[] = [];
  seeds: OrphanSeed[] = [];
  leftovers: SettledLeftover[] = [];
  version = '1000';
  alarm: string | null = null;
  shownAlarm: string | null = null;
  /** What the next listings fail with. */
  readonly problems: FailureFacts[] = [];
  /** Whether trying again cannot mend them. */
  permanent = false;
  /** Nodes on which a seed cannot be deleted. */
  readonly stuckNodes = new Set<string>();
  readonly signals: SignalOrphanInput[] = [];
  readonly published: PublishOrphansInput[] = [];
  readonly asked: ListSeedsInput[] = [];

  get deletedFrom(): string[] {
    return this.#deleted.map(({ node }) => node);
  }
  readonly #deleted: DeleteSeedInput[] = [];

  /** `tell` is what a signal does. */
  steps(tell: (input: SignalOrphanInput) => Promise<void> = async () => undefined): Partial<Steps> {
    return {
      listSeeds: async (input) => {
        this.asked.push(input);
        const facts = this.problems.shift();
        if (facts !== undefined) throw failure(facts, this.permanent ? 'Permanent' : 'Transient');
        const { settings } = this;
        const orphans = this.seeds.map((seed) => ({
          ...seed,
          examined: input.due.includes(`${seed.node} ${seed.file}`),
        }));
        return { settings, orphans, silentNodes: [] };
      },
      listManagedVms: async () => ({ vms: [], census: this.#census() }),
      signalOrphan: async (input) => {
        this.signals.push(input);
        await tell(input);
      },
      deleteSeed: async (input) => {
        if (input.orphan !== true) throw new Error('the owner of the seed was not asked for');
        if (this.stuckNodes.has(input.node)) {
          throw failure({ reason: 'DeletionBlocked', scope: 'proxy' });
        }
        this.#deleted.push(input);
        this.seeds = this.seeds.filter(
          ({ node, file }) => node !== input.node || file !== input.seedFile,
        );
        return { kind: 'task', upid: 'UPID:pve1:imgdel:' };
      },
      awaitTask: async () => ({ warnings: 0 }),
      publishOrphans: async (input) => {
        this.published.push(input);
      },
    };
  }

  #census(): Census {
    const { settings, managed, orphans, leftovers, version: listVersion } = this;
    const { alarm, shownAlarm } = this;
    return { settings, managed, orphans, leftovers, listVersion, alarm, shownAlarm };
  }
}

function failure(facts: FailureFacts, type = 'Transient'): ApplicationFailure {
  return ApplicationFailure.create({
    type,
    nonRetryable: true,
    message: `refused: ${facts.reason}`,
    details: [facts],
  });
}
