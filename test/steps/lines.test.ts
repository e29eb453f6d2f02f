/** Lines and spans of a VM's whole life, as a worker writes them (specification, Logging and Tracing). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { InMemorySpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { ProviderSteps } from '../../activities/index.ts';
import { createLogger } from '../../worker/runtime/logger.ts';
import { startTelemetry, type Telemetry } from '../../worker/runtime/telemetry.ts';
import type { WaitKind } from '../../workflows/contract/budgets.ts';
import { boundSteps } from '../support/boundSteps.ts';
import { healthRig } from '../support/healthRig.ts';
import { eventually } from '../support/eventually.ts';
import { aProxy } from '../support/memoryRecords.ts';
import { removing } from '../support/removals.ts';
import { hashOf, seedOf, startSteps, withSteps, type StepRig } from '../support/stepHarness.ts';
import { tokenSecret } from '../support/stepFixture.ts';

type Line = Record<string, unknown>;

const canary = 'canary-of-cloud-init';
const cloudInit = `#cloud-config\n# ${canary}\n`;
const exporter = new InMemorySpanExporter();
let telemetry: Telemetry;
let rig: StepRig;
let lines: Line[];
let spans: ReadableSpan[];
/** `debug`, what a level writes. */
const tier: Record<number, string> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn' };

before(async () => {
  telemetry = startTelemetry('test', exporter, {});
  rig = await startSteps();
  rig.configure({ isoStorage: 'proxy-seeds', machineTypes: { small: { cores: 1, memoryMiB: 512, diskGiB: 1 } } }); // prettier-ignore
  rig.records.put(aProxy({ spec: { cloudInit } }));
  const written: Line[] = [];
  const write = (text: string): void => {
    const line: Line = JSON.parse(text);
    written.push(line);
  };
  const log = createLogger('worker', 'trace', { write });
  await live(log);
  await telemetry.flush();
  spans = exporter.getFinishedSpans();
  lines = [...written, ...rig.lines.map((line) => ({ ...line, level: tier[Number(line.level)] }))];
});
after(async () => {
  await rig.close();
  await telemetry.shutdown();
});

/** A VM is made, found again, listed and removed; then it is gone. */
async function live(log: Parameters<typeof boundSteps>[1]): Promise<void> {
  const { run } = boundSteps(rig, log);
  const { ref, vmid } = rig;
  const wait = async (upid: string | null, kind: WaitKind): Promise<void> => {
    if (upid !== null) await run('awaitTask', { provider: 'pve', upid, kind, vmid });
  };
  const placement = { region: null, zone: 'pve1', machineType: 'small', image: 'debian-13' };
  const specHash = hashOf(cloudInit);
  const wanted = { ref, provider: 'pve', placement, specHash, deletionPolicy: 'Delete' } as const;
  const plan = await run('resolvePlacement', wanted);
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

function linesOf(msg: string): Line[] {
  return lines.filter((line) => line['msg'] === msg);
}

/** Every line about an instance has these. */
const instance = ['provider', 'vmid', 'name', 'node'];

const table: [tier: 'info' | 'debug' | 'trace', msg: string, fields: string[]][] = [
  ['debug', 'proxmox vmid taken by another vm, probing on', instance],
  ['debug', 'proxmox vm adopted', [...instance, 'status', 'qmpstatus']],
  ['debug', 'proxmox vm ensured running', instance],
  ['debug', 'proxmox vm fetched', [...instance, 'state', 'ip', 'uid', 'status', 'qmpstatus']],
  ['debug', 'proxmox vm not found', [...instance, 'reason']],
  ['debug', 'proxmox vm deleted', ['provider', 'vmid', 'destroyed']],
  ['debug', 'proxmox vms listed', ['provider', 'vms', 'candidates', 'managed']],
  ['debug', 'proxmox task failed', ['provider', 'upid', 'exitstatus']],
  ['debug', 'proxmox task finished with warnings', ['provider', 'upid', 'exitstatus']],
  ['debug', 'proxmox vm already gone', instance],
  ['debug', 'proxmox vm at this vmid is not ours, left alone', [...instance, 'vmName']],
  ['debug', 'proxmox vm carries no proxy-operator mark, left alone', instance],
  [
    'trace',
    'proxmox create resolved',
    ['provider', 'node', 'machineType', 'cores', 'memoryMiB', 'diskGiB', 'templateVmid', 'storage', 'isoStorage', 'bridge', 'vlanTag'], // prettier-ignore
  ],
  ['trace', 'proxmox seed built', [...instance, 'cloudInitBytes']],
  ['trace', 'proxmox guest agent answered', [...instance, 'interfaces']],
  ['trace', 'proxmox listed instance', instance],
];

describe('the lines of a VM', () => {
  for (const [level, msg, fields] of table) {
    it(`«${msg}» is a ${level} line with ${fields.join(', ')}`, () => {
      const found = linesOf(msg);
      assert.ok(found.length > 0, `never written; there were: ${names().join(' | ')}`);
      for (const line of found) {
        assert.equal(line['level'], level);
        for (const field of fields) assert.ok(field in line, `${field}: ${JSON.stringify(line)}`);
      }
    });
  }

  it('say whether a VM was destroyed: once when it was, and not when there was none of ours', () => {
    const told = linesOf('proxmox vm deleted').map((line) => line['destroyed']);
    assert.deepEqual(told, [true, false, false, false]);
  });

  it('name provider, step and run, and inside a step its trace and span', () => {
    const ours = lines.filter((line) => line['msg'] !== 'proxmox api call');
    assert.ok(ours.length > 30, `${ours.length} lines`);
    for (const line of ours) {
      assert.equal(line['provider'], 'pve', JSON.stringify(line));
      assert.equal(typeof line['step'], 'string');
      assert.equal(line['workflowId'], `proxy-${rig.ref.uid}`);
    }
    const inside = ours.filter((line) => !String(line['msg']).startsWith('step '));
    for (const line of inside) assert.match(String(line['spanID']), /^[0-9a-f]{16}$/);
  });

  it('tell of a failed step at info, with class, reason and facts; of the others at debug', () => {
    for (const line of linesOf('step finished')) assert.equal(line['level'], 'debug');
    const failed = linesOf('step failed');
    assert.ok(failed.length > 0);
    for (const line of failed) {
      assert.equal(line['level'], 'info');
      for (const field of ['class', 'reason', 'error', 'seconds']) assert.ok(field in line, field);
    }
  });

  it('show the size of cloud-init and of the seed, and at no level the token or cloud-init itself', () => {
    assert.equal(linesOf('proxmox seed built')[0]?.['cloudInitBytes'], cloudInit.length);
    const everything = JSON.stringify(lines);
    assert.ok(!everything.includes(canary));
    assert.ok(!everything.includes(tokenSecret));
  });
});

describe('the lines of a node', () => {
  it('«proxmox node checked» is a debug line with ready, reason and latency', () =>
    withSteps(async (other) => {
      await healthRig(other).check('pve1');
      const [line] = other.lines.filter(({ msg }) => msg === 'proxmox node checked');
      assert.equal(line?.['level'], 20);
      assert.deepEqual([line['node'], line['ready'], line['reason']], ['pve1', true, 'Reachable']);
      assert.equal(typeof line['latency'], 'number');
    }));

  it('«proxmox seed delete failed on a node, skipped» is a debug line with node and reason', () =>
    withSteps(async (other) => {
      const action = { kind: 'status', status: 500, reason: 'no', when: 'before' } as const;
      other.simulator.faults.push({ path: /pve2\/storage\/proxy-seeds\/content/, action });
      const { ref, plan, vmid } = other;
      const seed = { ref, provider: 'pve', vmName: plan.vmName, seedFile: seedOf(plan) };
      await boundSteps(other).run('deleteSeed', { ...seed, node: 'pve1', vmid, isoStorage: null });
      const [line] = other.lines.filter(({ msg }) => String(msg).endsWith('on a node, skipped'));
      assert.equal(line?.['level'], 20);
      assert.equal(line['node'], 'pve2');
      assert.match(
        String(line['reason']),
        /list ISO images of storage proxy-seeds on pve2.*500 no/,
      );
    }));
});

function names(): string[] {
  return [...new Set(lines.map((line) => String(line['msg'])))];
}

describe('the line of a request', () => {
  const calls = (call: string): Line[] =>
    linesOf('proxmox api call').filter((line) => line['call'] === call);

  it('is written once for every request that was sent', () => {
    // A clone under way is asked about behind the log's back by nobody: the simulator saw what the lines tell.
    assert.equal(linesOf('proxmox api call').length, rig.simulator.requests.length);
  });

  const requests: [call: string, fields: string[]][] = [
    ['listVms', ['rows']],
    ['getVmConfig', ['node', 'vmid', 'config']],
    ['getVmStatus', ['node', 'vmid', 'status', 'qmpstatus']],
    ['clone', ['node', 'vmid', 'newid', 'name', 'upid', 'description']],
    ['uploadIso', ['node', 'storage', 'filename', 'upid', 'bytes']],
    ['setVmConfig', ['node', 'vmid', 'set']],
    ['resize', ['node', 'vmid', 'upid', 'disk', 'size']],
    ['start', ['node', 'vmid', 'upid']],
    ['stop', ['node', 'vmid', 'upid']],
    ['destroy', ['node', 'vmid', 'upid']],
    ['deleteVolume', ['node', 'storage', 'volid', 'upid']],
    ['getTask', ['upid', 'status']],
  ];
  for (const [call, fields] of requests) {
    it(`${call} has ${fields.join(', ')}, and its duration`, () => {
      const [line] = calls(call);
      assert.ok(line, `no line of ${call}`);
      assert.equal(line['level'], 'debug');
      assert.equal(line['provider'], 'pve');
      for (const field of [...fields, 'duration']) assert.ok(field in line, field);
    });
  }

  it("has the agent's addresses once it answers, status and error while it does not", () => {
    const asked = calls('getAgentInterfaces');
    assert.ok(asked.some((line) => Array.isArray(line['addresses'])));
    const refused = asked.filter((line) => 'error' in line);
    for (const line of refused) assert.equal(line['httpStatus'], 500);
  });

  it("carries the span of its step, not of its own request; the step's lines carry the same one", () => {
    const steps = new Set(stepSpans().map((span) => span.spanContext().spanId));
    const told = linesOf('proxmox api call').map((line) => String(line['spanID']));
    assert.deepEqual(
      told.filter((id) => !steps.has(id)),
      [],
    );
    const adopted = linesOf('proxmox vm adopted')[0];
    assert.ok(told.includes(String(adopted?.['spanID'])));
  });
});

function stepSpans(): ReadableSpan[] {
  return spans.filter(({ name }) => name.startsWith('provider.'));
}

describe('spans', () => {
  it('are one a step, named after it, and one a request, named after its method', () => {
    const kinds = new Set(spans.map(({ name }) => name.replace(/^provider\..*/, 'provider.')));
    const methods = ['HTTP DELETE', 'HTTP GET', 'HTTP POST', 'HTTP PUT'];
    assert.deepEqual([...kinds].sort(), [...methods, 'provider.']);
    const requests = spans.length - stepSpans().length;
    assert.equal(requests, rig.simulator.requests.length);
  });

  it('of a request are children of the span of their step, and nothing is counted twice', () => {
    const steps = new Map(stepSpans().map((span) => [span.spanContext().spanId, span.name]));
    for (const span of spans) {
      if (steps.has(span.spanContext().spanId)) assert.equal(span.parentSpanContext, undefined);
      else assert.ok(steps.has(span.parentSpanContext?.spanId ?? ''), span.name);
    }
    const put = spans.find(({ name }) => name === 'HTTP PUT');
    const name: keyof ProviderSteps = 'configureVm';
    assert.equal(steps.get(put?.parentSpanContext?.spanId ?? ''), `provider.${name}`);
  });

  it('of a request have method, URL, server and status', () => {
    for (const { name, attributes } of spans.filter((span) => span.name.startsWith('HTTP'))) {
      assert.equal(`HTTP ${String(attributes['http.request.method'])}`, name);
      assert.match(String(attributes['url.full']), /^https:\/\/127\.0\.0\.1:\d+\/api2\/json\//);
      assert.equal(attributes['server.address'], '127.0.0.1');
      assert.equal(typeof attributes['server.port'], 'number');
      assert.equal(typeof attributes['http.response.status_code'], 'number');
    }
  });

  it('of a step name provider, VM and node; of a failed one the reason, too', () => {
    const start = stepSpans().find(({ name }) => name === 'provider.startVm');
    const { attributes } = start ?? assert.fail('no span of startVm');
    for (const field of instance) assert.ok(field in attributes, field);
    const failed = stepSpans().find(({ attributes: seen }) => seen['error.type'] === 'VmVanished');
    assert.ok(failed);
  });

  it('record neither the token nor cloud-init', () => {
    const recorded = JSON.stringify(spans.map(({ attributes, events }) => [attributes, events]));
    assert.ok(!recorded.includes(canary));
    assert.ok(!recorded.includes(tokenSecret));
  });
});
