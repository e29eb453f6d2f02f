/** A VM's whole life in the bound steps, as a worker runs them, with every line and span it leaves. */
import assert from 'node:assert/strict';
import { InMemorySpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { createLogger } from '../../worker/runtime/logger.ts';
import { startTelemetry } from '../../worker/runtime/telemetry.ts';
import type { WaitKind } from '../../workflows/contract/budgets.ts';
import { boundSteps } from './boundSteps.ts';
import { eventually } from './eventually.ts';
import { aProxy } from './memoryRecords.ts';
import { removing } from './removals.ts';
import { hashOf, seedOf, startSteps, type StepRig } from './stepHarness.ts';

export type Line = Record<string, unknown>;

export interface TracedLife {
  rig: StepRig;
  /** `level` by name. */
  lines: Line[];
  spans: ReadableSpan[];
  close(): Promise<void>;
}

/** In cloud-init of the VM, and to be found nowhere. */
export const canary = 'canary-of-cloud-init';
export const cloudInit = `#cloud-config\n# ${canary}\n`;
/** `debug`, what a level writes. */
const tier: Record<number, string> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn' };

/** Every line about an instance has these. */
export const instance = ['provider', 'vmid', 'name', 'node'];

/** One for each process: OpenTelemetry is the process's. Close it. */
export async function tracedLife(): Promise<TracedLife> {
  const exporter = new InMemorySpanExporter();
  const telemetry = startTelemetry('test', exporter, {});
  const rig = await startSteps();
  rig.configure({ isoStorage: 'proxy-seeds', machineTypes: { small: { cores: 1, memoryMiB: 512, diskGiB: 1 } } }); // prettier-ignore
  rig.records.put(aProxy({ spec: { cloudInit } }));
  const written: Line[] = [];
  const write = (text: string): void => {
    const line: Line = JSON.parse(text);
    written.push(line);
  };
  await live(rig, createLogger('worker', 'trace', { write }));
  await telemetry.flush();
  const requests = rig.lines.map((line) => ({ ...line, level: tier[Number(line['level'])] }));
  return {
    rig,
    lines: [...written, ...requests],
    spans: exporter.getFinishedSpans(),
    close: async () => {
      await rig.close();
      await telemetry.shutdown();
    },
  };
}

export function stepSpans(spans: readonly ReadableSpan[]): ReadableSpan[] {
  return spans.filter(({ name }) => name.startsWith('provider.'));
}

/** A VM is made, found again, listed and removed; then it is gone. */
async function live(rig: StepRig, log: Parameters<typeof boundSteps>[1]): Promise<void> {
  const { run } = boundSteps(rig, log);
  const { ref, vmid } = rig;
  const placement = { region: null, zone: 'pve1', machineType: 'small', image: 'debian-13' };
  const specHash = hashOf(cloudInit);
  const wanted = { ref, provider: 'pve', placement, specHash, deletionPolicy: 'Delete' } as const;
  const plan = await run('resolvePlacement', wanted);
  const { vmName } = plan;
  const wait = async (upid: string | null, kind: WaitKind): Promise<void> => {
    if (upid !== null) await run('awaitTask', { provider: 'pve', upid, kind, vmid, vmName });
  };
  const vm = rig.vmRef({ name: plan.vmName });
  const input = { ref, plan, vm };
  const known = { recordedVmids: [], avoidVmids: [], ownFreedVmids: [], recordedDiskKeys: {} };
  const stranger = rig.place({ config: { name: 'web-1', description: null, lock: 'backup' } });
  const found = await run('allocateVmid', { ref, plan, ...known });
  assert.equal(found.kind, 'vacant');
  rig.simulator.cluster.vms.delete(stranger.vmid);
  await wait((await run('cloneTemplate', { ref, plan, vmid, templateNode: 'pve1' })).upid, 'clone');
  const seed = await run('uploadSeed', input);
  await wait(seed.upid, 'upload');
  const sized = { seedBytes: seed.bytes, clearProtection: false };
  await run('configureVm', { kind: 'start', ...input, ...sized });
  await wait((await run('resizeDisk', input)).upid, 'resize');
  const fail = { kind: 'task', fail: 'start failed: QEMU exited with code 1' } as const;
  rig.simulator.faults.push({ method: 'POST', path: /\/start$/, action: fail });
  await wait((await run('startVm', input)).upid, 'start').catch(() => undefined);
  await wait((await run('startVm', input)).upid, 'start');
  await run('awaitRunning', input);
  const booting = { kind: 'status', status: 500, reason: 'QEMU guest agent is not running', when: 'before' } as const; // prettier-ignore
  rig.simulator.faults.push({ path: /\/agent\//, action: booting });
  await eventually(async () => run('pollAgent', input).then(() => true, () => false)); // prettier-ignore
  const again = await run('allocateVmid', { ref, plan, ...known });
  assert.equal(again.kind, 'ours');
  await run('listManagedVms', { ref, provider: 'pve' });

  rig.records.markDeleting(ref);
  const going = removing(rig, { vm, specHash });
  const stop = await run('stopVm', going);
  await wait(stop.kind === 'task' ? stop.upid : null, 'stop');
  const warnings = { kind: 'task', warnings: 1 } as const;
  rig.simulator.faults.push({ method: 'DELETE', path: /\/qemu\/\d+$/, action: warnings });
  const destroy = await run('destroyVm', going);
  await wait(destroy.kind === 'task' ? destroy.upid : null, 'destroy');
  await run('destroyVm', going);
  const seeded = { ref, provider: 'pve', vmName: vm.name, seedFile: seedOf(plan) };
  const dropped = await run('deleteSeed', { ...seeded, node: 'pve1', vmid, isoStorage: null });
  await wait(dropped.kind === 'task' ? dropped.upid : null, 'seedDelete');
  await run('stopVm', going);
  await run('startVm', input).catch(() => undefined);
  rig.place({ config: { name: 'web-2' } });
  await run('stopVm', going);
  rig.place({ config: { name: vm.name, description: null } });
  await run('stopVm', going);
}
