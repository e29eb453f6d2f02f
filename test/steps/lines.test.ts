/** Lines of a VM's whole life, as a worker writes them (specification, Logging). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { boundSteps } from '../support/boundSteps.ts';
import { healthRig } from '../support/healthRig.ts';
import { tokenSecret } from '../support/stepFixture.ts';
import { seedOf, withSteps, type StepRig } from '../support/stepHarness.ts';
import { canary, cloudInit, instance, stepSpans, tracedLife } from '../support/tracedLife.ts';
import type { Line, TracedLife } from '../support/tracedLife.ts';

let life: TracedLife;
let rig: StepRig;
let lines: Line[];
let spans: ReadableSpan[];
before(async () => {
  life = await tracedLife();
  ({ rig, lines, spans } = life);
});
after(() => life.close());

function linesOf(msg: string): Line[] {
  return lines.filter((line) => line['msg'] === msg);
}

const table: [tier: 'info' | 'debug' | 'trace', msg: string, fields: string[]][] = [
  ['debug', 'proxmox vmid taken by another vm, probing on', instance],
  ['debug', 'proxmox vm adopted', [...instance, 'status', 'qmpstatus']],
  ['debug', 'proxmox vm ensured running', instance],
  ['debug', 'proxmox vm fetched', [...instance, 'state', 'ip', 'uid', 'status', 'qmpstatus']],
  ['debug', 'proxmox vm not found', [...instance, 'reason']],
  ['debug', 'proxmox vm deleted', [...instance, 'destroyed']],
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

  it('name provider, VMID, name and node, each that is about an instance', () => {
    // About the cluster, and about a plan that has no VM yet.
    const others = ['proxmox vms listed', 'proxmox create resolved', 'proxmox api call'];
    const about = lines.filter((line) => {
      const msg = String(line['msg']);
      return msg.startsWith('proxmox ') && !others.includes(msg);
    });
    assert.ok(about.length >= 20, `${about.length} lines`);
    for (const line of about) {
      for (const field of instance) assert.ok(field in line, `${field}: ${JSON.stringify(line)}`);
    }
  });

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
    assert.ok(refused.length > 0);
    for (const line of refused) {
      assert.equal(line['httpStatus'], 500);
      assert.match(String(line['error']), /500 QEMU guest agent is not running/);
    }
  });

  it("carries the span of its step, not of its own request; the step's lines carry the same one", () => {
    const steps = new Set(stepSpans(spans).map((span) => span.spanContext().spanId));
    const told = linesOf('proxmox api call').map((line) => String(line['spanID']));
    assert.deepEqual(
      told.filter((id) => !steps.has(id)),
      [],
    );
    const adopted = linesOf('proxmox vm adopted')[0];
    assert.ok(told.includes(String(adopted?.['spanID'])));
  });
});
