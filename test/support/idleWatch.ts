/**
 * The watch of a provider over VMs that stay as they are, on a clock that goes on by itself: what takes a week in
 * production takes seconds. Watch, agent rounds and Proxmox client are the real ones; the answers come from memory.
 */
import { setImmediate as otherWork } from 'node:timers/promises';
import type { Proxy } from '../../api/proxy.ts';
import type { Clock, StepDeps } from '../../activities/deps.ts';
import { createProxmoxApi } from '../../activities/proxmox/client.ts';
import type { ProxmoxHttp } from '../../activities/proxmox/http.ts';
import { watchVms } from '../../activities/watchVms.ts';
import type { Observed } from '../../workflows/contract/messages.ts';
import { aProviderConfig, testInstallation } from './aPlan.ts';
import { memoryAlarms } from './memoryAlarms.ts';
import { memoryRecords } from './memoryRecords.ts';
import { recordingLog } from './recordingLog.ts';

/** A VM as the cluster shows it. */
export interface StillVm {
  vmid: number;
  node: string;
  name: string;
  ip: string;
  power: string;
}

export interface IdleWatchOptions {
  proxies: () => readonly Proxy[];
  vms: () => readonly StillVm[];
  /** What the Proxies' Secrets hold, by `<namespace>/<name>/<key>`. */
  secrets?: ReadonlyMap<string, Uint8Array>;
  observed: (workflowId: string, news: Observed) => Promise<void>;
  desiredChanged: (workflowId: string, generation: number) => Promise<void>;
}

export interface IdleWatch {
  /** Lets rounds pass until there were `count` in all, each of them whole. */
  until: (count: number) => Promise<void>;
  /** Times a guest's agent was asked so far. */
  agentsAsked: () => number;
  /** What the watch logged. */
  lines: readonly Record<string, unknown>[];
  stop: () => Promise<void>;
}

/** So often the rest of the process has its turn, since nothing here ever waits. */
const roundsBetweenTurns = 500;

/** Starts the watch of provider `pve`; no round passes before `until`. */
export function startIdleWatch(options: IdleWatchOptions): IdleWatch {
  const attempt = new AbortController();
  const { log, lines } = recordingLog();
  const cluster = new StillCluster(options.vms);
  const steps = stepDeps(options, cluster, log);
  const step = watchVms(
    {
      steps,
      api: (name, call) => createProxmoxApi(name, cluster, call),
      watchProxies: () => ({
        list: options.proxies,
        synced: () => true,
        stop: () => Promise.resolve(),
      }),
      alarms: steps.alarms,
      observed: options.observed,
      desiredChanged: options.desiredChanged,
      random: () => 0.5,
    },
    {
      call: { signal: attempt.signal, writesUntilMs: 0 },
      scheduledAtMs: 0,
      heartbeat: () => undefined,
      log,
    },
    { provider: 'pve' },
  );
  const over = new Error('the test has seen enough');
  const ended = step.catch((error: unknown) => {
    if (error !== over) throw error;
  });
  return {
    until: (count) => Promise.race([cluster.until(count), ended]),
    agentsAsked: () => cluster.agentsAsked,
    lines,
    stop: async () => {
      attempt.abort(over);
      cluster.open();
      await ended;
    },
  };
}

function stepDeps(
  { secrets }: IdleWatchOptions,
  http: ProxmoxHttp,
  log: StepDeps['log'],
): StepDeps {
  const config = aProviderConfig();
  const records = memoryRecords();
  for (const [key, content] of secrets ?? []) records.secrets.set(key, content);
  return {
    providers: {
      config: () => config,
      names: () => [config.name],
      api: (name, call) => createProxmoxApi(name, http, call),
    },
    kubernetes: records,
    survey: () => records.survey(),
    alarms: memoryAlarms(),
    installation: testInstallation,
    clock: selfWindingClock(Date.parse('2026-11-29T12:00:00Z')),
    pace: { taskMinMs: 5, taskMaxMs: 20, runningMs: 10, agentMs: 20, budgetScale: 1 },
    log,
  };
}

/** Whoever sleeps has slept. */
function selfWindingClock(startMs: number): Clock {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    sleep: (ms) => {
      nowMs += ms;
      return Promise.resolve();
    },
  };
}

/** Answers of Proxmox VE in the shapes of testdata/pve/9.2, as far as a watch asks for them. */
class StillCluster implements ProxmoxHttp {
  agentsAsked = 0;
  readonly #vms: () => readonly StillVm[];
  #listings = 0;
  #allowed = 0;
  #gate = Promise.withResolvers<void>();
  #reached = Promise.withResolvers<void>();

  constructor(vms: () => readonly StillVm[]) {
    this.#vms = vms;
  }

  /** Resolves when the listing after the `count`-th is asked for. */
  async until(count: number): Promise<void> {
    this.#reached = Promise.withResolvers<void>();
    this.#allowed = count;
    this.open();
    await this.#reached.promise;
  }

  /** Lets the listing that waits go on. */
  open(): void {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers<void>();
  }

  async send(
    ...[{ signal }, { path }]: Parameters<ProxmoxHttp['send']>
  ): ReturnType<ProxmoxHttp['send']> {
    if (path === '/cluster/resources') {
      await this.#turn(signal);
      return this.#vms().map(rowOf);
    }
    if (path === '/nodes') {
      const nodes = [...new Set(this.#vms().map(({ node }) => node))];
      return nodes.map((node) => ({ node, status: 'online', type: 'node', id: `node/${node}` }));
    }
    const [, vmid, what] = /^\/nodes\/[^/]+\/qemu\/(\d+)\/(.+)$/.exec(path) ?? [];
    const vm = this.#vms().find((one) => one.vmid === Number(vmid));
    if (vm !== undefined && what === 'config') return configOf(vm);
    if (vm === undefined || what !== 'agent/network-get-interfaces') {
      throw new Error(`a watch is not expected to ask for ${path}`);
    }
    this.agentsAsked += 1;
    return { result: [interfaceOf(vm)] };
  }

  tokenId(): Promise<string> {
    return Promise.resolve('proxy-operator@pve!operator');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    this.#listings += 1;
    while (this.#listings > this.#allowed && !signal.aborted) {
      this.#reached.resolve();
      await this.#gate.promise;
    }
    if (this.#listings % roundsBetweenTurns === 0) await otherWork();
  }
}

function rowOf({ vmid, node, name, power }: StillVm): object {
  const tags = 'proxy_operator';
  return { id: `qemu/${vmid}`, vmid, type: 'qemu', node, name, status: power, template: 0, tags };
}

function configOf(vm: StillVm): object {
  const net0 = `virtio=${macOf(vm)},bridge=vmbr0`;
  return { digest: '0'.repeat(40), name: vm.name, agent: '1', net0 };
}

function interfaceOf(vm: StillVm): object {
  const address = { 'ip-address-type': 'ipv4', 'ip-address': vm.ip, prefix: 24 };
  return { name: 'eth0', 'hardware-address': macOf(vm), 'ip-addresses': [address] };
}

function macOf({ vmid }: StillVm): string {
  const hex = vmid.toString(16).padStart(6, '0').toUpperCase();
  return `BC:24:11:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}`;
}
