/** Watches the VMs of one provider for as long as the worker lives, and tells the Proxies whose VM differs (design §7). */
import type { AbsenceAlarm } from '../api/providerHealth.ts';
import type { Proxy } from '../api/proxy.ts';
import { watchRoundMs } from '../workflows/contract/budgets.ts';
import type { Observed } from '../workflows/contract/messages.ts';
import type { WatchVmsInput } from '../workflows/contract/providerSteps.ts';
import type { StepContext, StepDeps } from './deps.ts';
import { seesVms } from './facts/cluster.ts';
import type { AbsenceAlarms } from './kubernetes/absenceAlarm.ts';
import type { ProxyHandlers } from './kubernetes/proxyStore.ts';
import type { CallContext, ProxmoxApi } from './proxmox/api.ts';
import { AgentRounds } from './watch/agents.ts';
import { cloudInitNews } from './watch/cloudInitNews.ts';
import { ConflictRounds } from './watch/conflictRounds.ts';
import { Differences, type Listing } from './watch/differences.ts';
import { MassAbsence } from './watch/massAbsence.ts';
import { leavingVms, watchedVms, type WatchedVm } from './watch/watched.ts';

/** What `watchVms` needs beyond the other steps. */
export interface WatchDeps {
  steps: StepDeps;
  /** API over the one socket of the watch (design §4). */
  api(provider: string, call: CallContext): ProxmoxApi;
  watchProxies(handlers: ProxyHandlers): {
    list(): readonly Proxy[];
    synced(): boolean;
    stop(): Promise<void>;
  };
  alarms: AbsenceAlarms;
  /** Signal `observed`; resolves also when there is no such run. */
  observed(workflowId: string, news: Observed): Promise<void>;
  /** Signal `desiredChanged`: the object, and with it its Secret, is to be read again. */
  desiredChanged(workflowId: string, generation: number): Promise<void>;
  random(): number;
}

/** How often what is due beside the listing is looked for. */
const tickMs = 1_000;

/** Ends only with the attempt: by rejecting with the reason of its signal. */
export async function watchVms(
  deps: WatchDeps,
  context: StepContext,
  { provider }: WatchVmsInput,
): Promise<void> {
  const { clock } = deps.steps;
  const { signal } = context.call;
  const watch = await startWatch(deps, context, provider);
  try {
    for (let nextRoundMs = 0; !signal.aborted;) {
      context.heartbeat();
      if (clock.now() >= nextRoundMs && watch.ready()) {
        nextRoundMs = clock.now() + watchRoundMs * deps.steps.pace.budgetScale;
        await watch.round();
      }
      watch.tick();
      await clock.sleep(tickMs * deps.steps.pace.budgetScale, signal).catch(() => undefined);
    }
  } finally {
    await watch.stop();
  }
  signal.throwIfAborted();
}

interface Watch {
  ready(): boolean;
  round(): Promise<void>;
  tick(): void;
  stop(): Promise<void>;
}

async function startWatch(deps: WatchDeps, context: StepContext, provider: string): Promise<Watch> {
  const { steps } = deps;
  const { log } = context;
  const absence = new MassAbsence(provider, await deps.alarms.read(provider));
  const differences = new Differences();
  let published: string | null = JSON.stringify(absence.alarm());
  let problem = '';

  async function tell(vm: WatchedVm, news: Observed = {}): Promise<boolean> {
    const { namespace, name } = vm.proxy.metadata;
    const fields = { proxy: `${namespace}/${name}`, vmid: vm.vmid, ...news };
    try {
      await deps.observed(vm.workflowId, news);
      log.info(fields, 'proxy told to look at its vm');
      return true;
    } catch (error) {
      log.warn({ err: error, ...fields }, 'proxy not told to look at its vm, told again later');
      return false;
    }
  }

  const agents = new AgentRounds({
    steps,
    context,
    provider,
    tell: async (vm) => {
      if (!standing()) await tell(vm);
    },
    checkCloudInit: async ({ proxy, workflowId, role }) => {
      if (role !== 'serving' || !(await cloudInitNews(steps, proxy))) return;
      await deps.desiredChanged(workflowId, proxy.metadata.generation);
    },
    random: () => deps.random(),
  });
  const conflicts = new ConflictRounds({ steps, context, tell });

  /** Whether an alarm stands that nobody has confirmed. */
  function standing(): AbsenceAlarm | null {
    const alarm = absence.alarm();
    const { confirmAbsence } = steps.providers.config(provider).proxmox;
    return alarm === null || alarm.id === confirmAbsence ? null : alarm;
  }

  /** Told once when it begins and once when it ends; written before anything is concluded. */
  async function publishAlarm(): Promise<void> {
    const alarm = absence.alarm();
    const text = JSON.stringify(alarm);
    if (text === published) return;
    await deps.alarms.write(provider, alarm);
    published = text;
    if (alarm === null) log.info({}, 'mass absence is over');
    else log.error({ ...alarm }, 'mass absence of vms, nothing is concluded from it');
  }

  /** With its ProviderHealth an alarm that stands can go, or change: it is written again. */
  async function keepAlarm(): Promise<void> {
    const alarm = absence.alarm();
    if (alarm === null) return;
    if ((await deps.alarms.read(provider))?.id === alarm.id) return;
    published = null;
    await publishAlarm();
  }

  async function round(): Promise<void> {
    await keepAlarm();
    const proxies = watched.list();
    const vms = watchedVms(proxies, provider);
    agents.update(vms);
    const leaving = leavingVms(proxies, provider);
    const known = [...vms, ...leaving];
    if (known.length === 0 && absence.alarm() === null) return;
    const api = deps.api(provider, context.call);
    const [rows, nodes] = [await api.listVms(), await api.listNodes()];
    const listing: Listing = { rows, nodes };
    if (!(await isComplete(api, known, listing))) return;
    const { confirmAbsence: confirmed } = steps.providers.config(provider).proxmox;
    absence.take({ watched: vms, leaving }, listing, { nowMs: steps.clock.now(), confirmed });
    await publishAlarm();
    if (standing() !== null) return;
    for (const vm of differences.take(vms, listing, steps.clock.now())) {
      if (!(await tell(vm))) differences.untold(vm);
    }
    await conflicts.round(proxies, vms);
  }

  const watched = deps.watchProxies({});
  return {
    ready: () => watched.synced(),
    round: async () => {
      try {
        await round();
        if (problem !== '') log.info({}, 'watch of vms is back');
        problem = '';
      } catch (error) {
        if (context.call.signal.aborted) return;
        const text = error instanceof Error ? error.message : String(error);
        if (text !== problem) log.warn({ err: error }, 'watch of vms failed, trying again');
        problem = text;
      }
    },
    tick: () => {
      if (standing() === null) agents.start();
    },
    stop: async () => {
      await watched.stop();
      await agents.settle();
    },
  };
}

/** A listing leaves out what the token may not see: with a right missing, what is missing proves nothing. */
async function isComplete(
  api: ProxmoxApi,
  vms: readonly WatchedVm[],
  { rows }: Listing,
): Promise<boolean> {
  const listed = new Set(rows.map(({ vmid }) => vmid));
  if (vms.every(({ vmid }) => listed.has(vmid))) return true;
  return seesVms(api, '/vms');
}
