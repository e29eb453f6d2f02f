import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { awaitRunning } from '../../activities/awaitRunning.ts';
import { awaitTask } from '../../activities/awaitTask.ts';
import { pollAgent } from '../../activities/pollAgent.ts';
import { NotYet } from '../../activities/providerError.ts';
import { startVm } from '../../activities/startVm.ts';
import { waitBudgets } from '../../workflows/contract/budgets.ts';
import type { AwaitTaskInput, VmStepInput } from '../../workflows/contract/steps.ts';
import type { Vm } from '../simulator/cluster.ts';
import { newHaResource } from '../simulator/endpoints/ha.ts';
import { powerOff, powerOn } from '../simulator/power.ts';
import { eventually } from '../support/eventually.ts';
import { stepFixture } from '../support/stepFixture.ts';
import { expectReason, withSteps, type StepRig } from '../support/stepHarness.ts';

function about(rig: StepRig): VmStepInput {
  return { ref: rig.ref, plan: rig.plan, vm: rig.vmRef() };
}

function longAgo(kind: keyof typeof waitBudgets): { scheduledAtMs: number } {
  return { scheduledAtMs: Date.now() - waitBudgets[kind] - 1_000 };
}

describe('startVm', () => {
  it('rests after a stop, because a start right behind it keeps the lock for half a minute', () =>
    withSteps(async (rig) => {
      const vm = rig.place();
      powerOn(rig.simulator.core, vm);
      const api = rig.deps.providers.api('pve', {
        signal: new AbortController().signal,
        writesUntilMs: Number.MAX_SAFE_INTEGER,
      });
      await rig.finish(await api.stop('pve1', rig.vmid));
      const error = expectReason(await rig.refusal(startVm, about(rig)), 'WaitingForLock');
      const rest = error.facts.retryAfterMs ?? 0;
      assert.ok(rest > 3_000 && rest <= 6_000, `rests ${rest} ms`);
      assert.equal(rig.sent('POST', /\/status\/start$/).length, 0);
    }));

  it('resumes a hibernated VM and waits for other locks', () =>
    withSteps(async (rig) => {
      const vm = rig.place({ config: { lock: 'backup' } });
      const error = expectReason(await rig.refusal(startVm, about(rig)), 'WaitingForLock');
      assert.equal(error.facts.lock, 'backup');
      vm.config.set('lock', 'suspended');
      // Any volume that exists does for a saved state.
      vm.config.set('vmstate', vm.config.get('scsi0')?.split(',')[0] ?? '');
      await rig.finish((await rig.run(startVm, about(rig))).upid);
      assert.notEqual(vm.running, null);
    }));

  it('goes back for a new seed when the seed is missing at the start', () =>
    withSteps(async (rig) => {
      rig.place({ config: { ide2: 'proxy-seeds:iso/nowhere.iso,media=cdrom' } });
      const { upid } = await rig.run(startVm, about(rig));
      const waiting = { provider: 'pve', upid: upid ?? '', kind: 'start', vmid: rig.vmid } as const;
      const error = await rig.refusal(awaitTask, waiting);
      expectReason(error, 'UploadNotConfirmed');
      assert.equal(error.facts.goBack, true);
    }));
});

describe('awaitTask', () => {
  function task(
    rig: StepRig,
    body: (seconds: (n: number) => Promise<void>) => Promise<void>,
  ): string {
    return rig.simulator.core.tasks.start(
      { node: 'pve1', type: 'qmclone', id: '9001', authId: 'proxy-operator@pve!operator' },
      (worker) => body((n) => worker.sleep(n)),
    );
  }
  function waiting(upid: string, kind: AwaitTaskInput['kind'] = 'clone'): AwaitTaskInput {
    return { provider: 'pve', upid, kind, vmid: 100_007 };
  }

  it('gives a sign of life with every look and ends with the task', () =>
    withSteps(async (rig) => {
      const { promise: end, resolve: finish } = Promise.withResolvers<void>();
      const upid = task(rig, () => end);
      const seen: unknown[] = [];
      const heartbeat = (details: unknown): void => {
        seen.push(details);
        if (seen.length === 3) finish();
      };
      assert.deepEqual(await rig.run(awaitTask, waiting(upid), { heartbeat }), { warnings: 0 });
      assert.deepEqual(seen.slice(0, 3), [{ upid }, { upid }, { upid }]);
      assert.deepEqual(await rig.run(awaitTask, waiting(upid)), { warnings: 0 });
    }));

  it('counts warnings as success', () =>
    withSteps(async (rig) => {
      rig.place();
      const action = { kind: 'task', warnings: 2 } as const;
      rig.simulator.faults.push({ method: 'POST', path: /\/start$/, action });
      const { upid } = await rig.run(startVm, about(rig));
      assert.deepEqual(await rig.run(awaitTask, waiting(upid ?? '', 'start')), { warnings: 2 });
    }));

  it('names the UPID when the budget runs out, and leaves the task alone', () =>
    withSteps(async (rig) => {
      const upid = task(rig, (sleep) => sleep(1_000));
      const error = await rig.refusal(awaitTask, waiting(upid), longAgo('clone'));
      expectReason(error, 'BudgetExceeded');
      assert.ok(error.message.includes(upid));
      assert.match(error.message, /after 10 min/);
      assert.deepEqual([error.facts.upid, error.facts.goBack], [upid, true]);
      assert.equal(rig.sent('DELETE', /./).length, 0);
    }));

  it('takes the result of a task that ended in time although nobody looked', () =>
    withSteps(async (rig) => {
      const upid = task(rig, (sleep) => sleep(0));
      await eventually(() => rig.simulator.tasks[0]?.running === false);
      const late = rig.run(awaitTask, waiting(upid), longAgo('clone'));
      assert.deepEqual(await late, { warnings: 0 });
    }));

  const ends: [title: string, spoil: (rig: StepRig, upid: string) => void, reason: string][] = [
    ['was killed', (rig, upid) => rig.simulator.killTask(upid), 'TaskFailed'],
    [
      'is unknown',
      (rig, upid) => {
        const found = rig.simulator.core.tasks.find(upid);
        if (found !== undefined) found.vanished = true;
      },
      'TaskUnknown',
    ],
  ];
  for (const [title, spoil, reason] of ends) {
    it(`sends the line back to look when its task ${title}`, () =>
      withSteps(async (rig) => {
        const upid = task(rig, () => new Promise(() => undefined));
        spoil(rig, upid);
        const error = await rig.refusal(awaitTask, waiting(upid, 'start'));
        assert.deepEqual([error.facts.reason, error.facts.goBack], [reason, true]);
      }));
  }

  it('ends at once when the wait is cancelled', () =>
    withSteps(async (rig) => {
      const upid = task(rig, (sleep) => sleep(1_000));
      const stop = new AbortController();
      const call = { signal: stop.signal, writesUntilMs: 0 };
      const heartbeat = (): void => stop.abort(new Error('cancelled by the test'));
      await assert.rejects(
        rig.run(awaitTask, waiting(upid), { call, heartbeat }),
        /cancelled by the test|abort/i,
      );
    }));

  it('takes a destroy that found nothing for an end that the next look proves', () =>
    withSteps(async (rig) => {
      const fail = "Configuration file 'nodes/pve1/qemu-server/100007.conf' does not exist";
      const upid = task(rig, () => Promise.reject(new Error(fail)));
      assert.deepEqual(await rig.run(awaitTask, waiting(upid, 'destroy')), { warnings: 0 });
      const error = await rig.refusal(awaitTask, waiting(upid, 'start'));
      assert.equal(error.errorClass, 'NotFound');
    }));
});

describe('awaitRunning', () => {
  it('tells the node the VM runs on', () =>
    withSteps(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ node: 'pve2' }));
      assert.deepEqual(await rig.run(awaitRunning, about(rig)), { node: 'pve2' });
    }));

  it('says that the VM stopped again', () =>
    withSteps(async (rig) => {
      const vm = rig.place();
      powerOn(rig.simulator.core, vm);
      powerOff(rig.simulator.core, vm);
      const error = expectReason(await rig.refusal(awaitRunning, about(rig)), 'VmStopped');
      assert.equal(error.errorClass, 'Transient');
    }));

  function placeManaged(rig: StepRig): Vm {
    const vm = rig.place();
    rig.simulator.cluster.ha.resources.set(vm.vmid, newHaResource(vm.vmid, 'stopped'));
    return vm;
  }

  it('waits for the HA manager, whose start task ends before anything happens', () =>
    withSteps(async (rig) => {
      const vm = placeManaged(rig);
      await rig.finish((await rig.run(startVm, about(rig))).upid);
      assert.deepEqual(await rig.run(awaitRunning, about(rig)), { node: 'pve1' });
      assert.notEqual(vm.running, null);
    }));

  it('gives up on the HA manager when its minute is over', () =>
    withSteps(async (rig) => {
      placeManaged(rig);
      const error = await rig.refusal(awaitRunning, about(rig), longAgo('running'));
      expectReason(error, 'BudgetExceeded');
      assert.match(error.message, /60 s .*ha-manager status/);
    }));
});

/** Guests do not finish booting by themselves. */
const slowGuests = { fixture: stepFixture({ times: { agentSeconds: 100_000 } }) };

function booted(vm: Vm): void {
  assert.ok(vm.running);
  Object.assign(vm.running, { agentUp: true, address: '10.99.1.7' });
}

describe('pollAgent', () => {
  it('asks again while the guest boots, and then gives the address of net0', () =>
    withSteps(async (rig) => {
      const vm = rig.place();
      powerOn(rig.simulator.core, vm);
      await assert.rejects(rig.run(pollAgent, about(rig)), NotYet);
      booted(vm);
      assert.deepEqual(await rig.run(pollAgent, about(rig)), { ip: '10.99.1.7', node: 'pve1' });
    }, slowGuests));

  it('says what to look at on the guest when the agent stays silent', () =>
    withSteps(async (rig) => {
      powerOn(rig.simulator.core, rig.place());
      const error = await rig.refusal(pollAgent, about(rig), longAgo('agent'));
      expectReason(error, 'AgentSilent');
      assert.match(error.message, /qemu-guest-agent.*cloud-init-output\.log.*DHCP/s);
    }, slowGuests));

  it('says that the agent option is off', () =>
    withSteps(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ config: { agent: '0' } }));
      const error = expectReason(await rig.refusal(pollAgent, about(rig)), 'AgentSilent');
      assert.match(error.message, /qm set \d+ --agent 1/);
      assert.equal(rig.sent('GET', /\/agent\//).length, 0);
    }));

  it('keeps to the networks of the provider', () =>
    withSteps(async (rig) => {
      rig.configure({ address: { cidrs: ['192.0.2.0/24'] } });
      const vm = rig.place();
      powerOn(rig.simulator.core, vm);
      booted(vm);
      await assert.rejects(rig.run(pollAgent, about(rig)), NotYet);
    }, slowGuests));

  it('does not take the address of another VM on its VMID', () =>
    withSteps(async (rig) => {
      powerOn(rig.simulator.core, rig.place({ config: { name: 'web-1' } }));
      expectReason(await rig.refusal(pollAgent, about(rig)), 'VmVanished');
    }));

  it('says that the VM stopped', () =>
    withSteps(async (rig) => {
      rig.place();
      expectReason(await rig.refusal(pollAgent, about(rig)), 'VmStopped');
    }));

  it('asks one agent of a node at a time', () =>
    withSteps(async (rig) => {
      const inputs = [0, 1, 2, 3].map((index) => {
        const vmid = 100_500 + index;
        powerOn(rig.simulator.core, rig.place({ vmid }));
        return { ...about(rig), vm: rig.vmRef({ vmid }) };
      });
      let asking = 0;
      let most = 0;
      const { providers } = rig.deps;
      const watched: typeof providers = {
        ...providers,
        api: (name, call) => {
          const api = providers.api(name, call);
          return {
            ...api,
            getAgentInterfaces: async (node, vmid) => {
              asking += 1;
              most = Math.max(most, asking);
              return api.getAgentInterfaces(node, vmid).finally(() => void (asking -= 1));
            },
          };
        },
      };
      rig.deps.providers = watched;
      await Promise.allSettled(inputs.map((input) => rig.run(pollAgent, input)));
      assert.equal(rig.sent('GET', /\/agent\//).length, 4);
      assert.equal(most, 1);
    }));
});
