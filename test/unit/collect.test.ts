import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acceptClaim, requestCollection } from '../../workflows/accept.ts';
import { collect } from '../../workflows/collect.ts';
import type { ManagedVm } from '../../workflows/contract/removalSteps.ts';
import type { Life } from '../../workflows/life.ts';
import type { ProxyState } from '../../workflows/state.ts';
import { desiredProxy } from '../support/fakeWorld.ts';
import { state, trouble, vm } from '../support/proxyStates.ts';

/** A run of a missing object that is told of VM 100001 on provider `other`, where `vms` are the UID's. */
async function told(serving: ProxyState['serving'], vms: ManagedVm[]): Promise<ProxyState> {
  const run = state({
    objectFound: false,
    serving,
    orphans: [{ provider: 'other', vmid: 100001 }],
  });
  const life: Pick<Life, 'state' | 'step'> = { state: run, step: listing(vms) };
  await collect({ ...noBackground, ...life });
  return run;
}

/** Every step is `listManagedVms` here. */
function listing(vms: ManagedVm[]): Life['step'] {
  return async function answer<Result>(): Promise<Result> {
    return JSON.parse(JSON.stringify({ vms, census: null }));
  };
}

const noBackground: Omit<Life, 'state' | 'step'> = {
  readAgain: () => Promise.resolve(true),
  published: () => Promise.resolve(),
  idle: () => true,
  quiet: () => true,
  resting: () => true,
  stop: () => undefined,
};

const listed = { vmid: 100001, node: 'pv2-1', specHash: 'bbbb' };

describe('an orphan', () => {
  it('is the VM on the provider it was told of, not one with its VMID on another', async () => {
    const serving = vm(100001, 'aaaa', { ip: '192.0.2.10' });
    const other = { ...listed, name: 'proxy-p1-abcdef-11111111-bbbb' };
    const { removals, serving: kept } = await told(serving, [other]);
    assert.deepEqual(
      removals.map((removal) => [removal.vm.provider, removal.vm.name, removal.purpose]),
      [['other', other.name, 'orphan']],
    );
    assert.equal(kept, serving);
  });

  it('is the VM of the record where its provider has another name by now', async () => {
    const serving = vm(100001, 'aaaa', { ip: '192.0.2.10' });
    const { removals, serving: kept } = await told(serving, [{ ...listed, name: serving.name }]);
    const [removal] = removals;
    assert.deepEqual([removal?.vm.provider, removal?.vm.ip], ['other', '192.0.2.10']);
    assert.equal(kept, null);
  });

  it('of a provider that left holds up none of another provider', async () => {
    const orphans = ['left', 'pve'].map((provider) => ({ provider, vmid: 100001 }));
    const run = state({ objectFound: false, orphans });
    const step = (): Promise<never> => Promise.reject(new Error('nobody serves it'));
    await assert.rejects(collect({ ...noBackground, state: run, step }), /nobody serves it/);
    assert.deepEqual(
      run.orphans.map(({ provider }) => provider),
      ['pve', 'left'],
    );
  });

  it("that could not be looked for is in nobody's way when the object is back", () => {
    const run = state({ objectFound: false, removalTrouble: trouble() });
    requestCollection(run, { provider: 'pve', vmid: 100001 });
    const recorded = { vmid: null, node: null, vmName: null, provider: null, specHash: null, ip: null, healthy: null, everReady: false, handled: run.handled, leftovers: [] }; // prettier-ignore
    const desired = desiredProxy();
    acceptClaim(run, { found: true, deleting: false, firstClaim: false, desired, recorded });
    assert.deepEqual([run.orphans, run.removalTrouble], [[], null]);
  });
});
