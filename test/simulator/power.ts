import { setTimeout as realDelay } from 'node:timers/promises';
import {
  agentConfigured,
  applyPending,
  checkLock,
  isTemplate,
  vmName,
  type Running,
  type Vm,
} from './cluster.ts';
import type { Core } from './core.ts';
import { dieWith } from './errors.ts';
import { nameFaultsOf } from './nameFaults.ts';
import { newLeases, startGuestProxy } from './guests.ts';
import { readSeed } from './iso.ts';
import { vmLockPath } from './locks.ts';
import type { Worker } from './tasks.ts';
import { agentEnabled, drivesOf, isCdrom, parseNic } from './vmConfig.ts';

let nextQemuPid = 1955;

/** What the start worker does once it has the lock; throws the texts of a failed start (pve/README 11). */
export async function startQemu(core: Core, vm: Vm, worker: Worker): Promise<void> {
  if (isTemplate(vm)) throw dieWith("you can't start a vm if it's a template");
  const suspended = vm.config.get('lock') === 'suspended';
  checkLock(vm, ['suspended']);
  if (vm.running !== null) throw dieWith(`VM ${vm.vmid} already running`);
  if (suspended) {
    worker.log('Resuming suspended VM');
    worker.log(`activating and using '${vm.config.get('vmstate') ?? ''}' as vmstate`);
    if (core.cluster.storages.lookup(vm.config.get('vmstate') ?? '', vm.node) === undefined) {
      // A state that QEMU cannot load; the lock stays (07-start-suspended).
      worker.log('kvm: -loadstate: invalid option');
      throw dieWith('start failed: QEMU exited with code 1');
    }
  } else {
    applyPending(vm);
  }
  for (const { drive, key } of drivesOf(vm.config)) {
    if (key.startsWith('unused') || drive.file === 'none' || drive.file === 'cdrom') continue;
    if (core.cluster.storages.lookup(drive.file, vm.node) === undefined) {
      throw dieWith(`volume '${drive.file}' does not exist`);
    }
  }
  const bridges = core.cluster.nodes.get(vm.node)?.bridges ?? [];
  for (const [key, value] of vm.config) {
    if (!/^net\d+$/.test(key)) continue;
    const bridge = parseNic(key, value).options.get('bridge');
    if (bridge !== undefined && !bridges.includes(bridge)) {
      throw dieWith(`bridge '${bridge}' does not exist`);
    }
  }
  await worker.sleep(core.times.startSeconds);
  if (suspended) {
    vm.config.delete('lock');
    vm.config.delete('vmstate');
  }
  powerOn(core, vm);
}

/** QEMU runs from now on; the guest boots in the background. */
export function powerOn(core: Core, vm: Vm): void {
  const running: Running = {
    pid: nextQemuPid,
    startedAt: core.clock.now(),
    qmpstatus: 'running',
    bootConfig: new Map(vm.config),
    frozen: false,
    agentUp: false,
    agentUpAt: null,
    address: null,
    proxyPort: null,
    proxyAuth: null,
    proxyBroken: nameFaultsOf(vmName(vm)).some(({ proxy }) => proxy === 'broken'),
    closeProxy: () => undefined,
    end: new AbortController(),
  };
  nextQemuPid += 17;
  running.end.signal.addEventListener('abort', () => running.closeProxy(), { once: true });
  vm.running = running;
  holdLockAfterQuickRestart(core, vm);
  bootGuest(core, vm, running).catch(() => undefined);
}

/**
 * qmeventd's `qm cleanup` for the old process sees the new one and keeps the VM's lock for up to 30 s
 * (pve/README 31, 07-race-*).
 */
function holdLockAfterQuickRestart(core: Core, vm: Vm): void {
  if (vm.stoppedAt === null || core.clock.since(vm.stoppedAt) > 2) return;
  const { running } = vm;
  const owner = { log: () => undefined };
  const hold = core
    .locks(vm.node)
    .withLock({ path: vmLockPath(vm.vmid), timeoutSeconds: 30, owner }, async () => {
      await core.clock.sleep(30, running?.end.signal);
    });
  hold.catch(() => undefined);
}

/** The guest's own life: DHCP, agent, proxy. Ends with the QEMU process. */
async function bootGuest(core: Core, vm: Vm, running: Running): Promise<void> {
  const faults = nameFaultsOf(vmName(vm));
  const agentFault = faults.find((fault) => fault.agent !== undefined)?.agent;
  const slowdown = agentFault === 'slow' ? 4 : 1;
  await core.clock.sleep(core.times.agentSeconds * slowdown, running.end.signal);
  const nic = vm.config.get('net0');
  if (nic !== undefined && agentFault !== 'no-address') {
    running.address = leasesOf(core).addressFor(parseNic('net0', nic).mac);
  }
  await startProxy(core, vm, running);
  if (agentFault !== 'silent' && agentConfiguredAtBoot(running)) {
    running.agentUp = true;
    running.agentUpAt = core.clock.now();
  }
  const crash = faults.find((fault) => fault.crashAfterSeconds !== undefined)?.crashAfterSeconds;
  if (crash === undefined) return;
  await core.clock.sleep(crash, running.end.signal);
  powerOff(core, vm);
}

/** The agent's device exists only if the option was on when QEMU started (api-facts 5.22). */
function agentConfiguredAtBoot(running: Running): boolean {
  return agentEnabled(running.bootConfig);
}

const plainLeases = new WeakMap<Core, ReturnType<typeof newLeases>>();

function leasesOf(core: Core): ReturnType<typeof newLeases> {
  if (core.network !== null) return core.network;
  const leases = plainLeases.get(core) ?? newLeases('10.99');
  plainLeases.set(core, leases);
  return leases;
}

/** What can befall a guest that runs. */
export interface GuestChange {
  /** Its proxy answers 502 to everything, or works again. */
  proxyBroken?: boolean;
  /** It lost its lease, and lives on at another address. */
  newAddress?: boolean;
}

/** Throws when the guest does not run, or has no address yet. */
export function changeGuest(core: Core, vm: Vm, change: GuestChange): void {
  const { running } = vm;
  const nic = vm.config.get('net0');
  if (running === null || running.address === null || nic === undefined) {
    throw new Error(`VM ${vm.vmid} has not booted`);
  }
  running.proxyBroken = change.proxyBroken ?? running.proxyBroken;
  if (change.newAddress !== true) return;
  running.closeProxy();
  running.address = leasesOf(core).newAddressFor(parseNic('net0', nic).mac);
  listen(core, vm, running).catch(() => undefined);
}

/** A proxy listens only in a guest that found a NoCloud seed on its CD-ROM. */
async function startProxy(core: Core, vm: Vm, running: Running): Promise<void> {
  const fault = nameFaultsOf(vmName(vm)).find((entry) => entry.proxy !== undefined)?.proxy;
  const cdrom = drivesOf(vm.config).find(({ drive }) => isCdrom(drive));
  if (cdrom === undefined || running.address === null || fault === 'refuses') return;
  const image = core.cluster.storages.lookup(cdrom.drive.file, vm.node)?.bytes ?? null;
  const seed = image === null ? null : readSeed(image);
  if (seed === null) return;
  running.proxyPort = seed.proxyPort;
  running.proxyAuth = fault === 'asks' ? 'demo:demo' : seed.proxyAuth;
  await listen(core, vm, running);
}

/** Where the guest is reached now, if it has a proxy at all. */
async function listen(core: Core, vm: Vm, running: Running): Promise<void> {
  if (core.network === null || running.address === null || running.proxyPort === null) return;
  const proxy = await listenPatiently(core, vm, {
    address: running.address,
    port: running.proxyPort,
    auth: running.proxyAuth,
    broken: () => running.proxyBroken,
  });
  running.closeProxy = () => proxy?.close();
  if (running.end.signal.aborted) running.closeProxy();
}

async function listenPatiently(
  core: Core,
  vm: Vm,
  options: { address: string; port: number; auth: string | null; broken: () => boolean },
): Promise<{ close(): void } | null> {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    try {
      return await startGuestProxy({
        ...options,
        onRequest: (line) => {
          if (core.proxyRequests.length >= 50_000) core.proxyRequests.splice(0, 5_000);
          core.proxyRequests.push({ vmid: vm.vmid, line });
        },
      });
    } catch {
      // The previous run of the same VM may still be letting go of the port.
      await realDelay(50);
    }
  }
  return null;
}

/** The QEMU process is gone, whoever ended it. */
export function powerOff(core: Core, vm: Vm): void {
  if (vm.running === null) return;
  vm.running.end.abort(new Error('powered off'));
  vm.running = null;
  vm.stoppedAt = core.clock.now();
  applyPending(vm);
}

/** A hard stop; the caller holds the lock. A hung QEMU takes 70 s (pve/README 33). */
export async function stopQemu(core: Core, vm: Vm, worker: Worker): Promise<void> {
  if (vm.running === null) return;
  checkLock(vm);
  if (vm.running.frozen) {
    await worker.sleep(60);
    worker.log('VM quit/powerdown failed - terminating now with SIGTERM');
    await worker.sleep(10);
    worker.log('VM still running - terminating now with SIGKILL');
  }
  await worker.sleep(core.times.stopSeconds);
  powerOff(core, vm);
}

/** A clean shutdown: needs a guest that has booted. */
export async function shutdownQemu(
  core: Core,
  vm: Vm,
  worker: Worker,
  options: { timeoutSeconds: number; force: boolean },
): Promise<void> {
  if (vm.running === null) return;
  checkLock(vm);
  const booted = core.clock.since(vm.running.startedAt) >= core.times.agentSeconds;
  const listens = booted && !vm.running.frozen && vm.running.qmpstatus === 'running';
  if (listens && core.times.shutdownSeconds <= options.timeoutSeconds) {
    await worker.sleep(core.times.shutdownSeconds);
    powerOff(core, vm);
    return;
  }
  await worker.sleep(options.timeoutSeconds);
  if (!options.force) throw dieWith('VM quit/powerdown failed - got timeout');
  worker.log('VM still running - terminating now with SIGTERM');
  await worker.sleep(core.times.stopSeconds);
  powerOff(core, vm);
}

export function agentAnswers(vm: Vm): boolean {
  const { running } = vm;
  return (
    running !== null &&
    running.agentUp &&
    !running.frozen &&
    running.qmpstatus === 'running' &&
    agentConfigured(vm)
  );
}
