import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noteVanished } from '../../workflows/vanished.ts';
import { desiredProxy } from '../support/fakeWorld.ts';
import { now, state, vm } from '../support/proxyStates.ts';

describe('a VM that served and is gone', () => {
  it('is made again, and one begun for a spec that was taken back meanwhile is not forgotten', () => {
    const serving = vm(100001, 'aaaa', { ip: '192.0.2.10', everReady: true });
    const begun = vm(100002, 'bbbb');
    const run = state({ serving, next: begun });
    noteVanished(run, desiredProxy({ specHash: 'aaaa' }), serving, now);
    assert.deepEqual([run.serving, run.next?.vmid, run.next?.ip], [null, 100001, null]);
    assert.deepEqual(
      run.removals.map((removal) => [removal.vm.vmid, removal.purpose]),
      [[100002, 'replacement']],
    );
  });
});
