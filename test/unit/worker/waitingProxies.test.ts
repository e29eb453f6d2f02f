/** Who is told that a provider changed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitingFor } from '../../../worker/waitingProxies.ts';

/** Ready on `a`, as its only generation wanted it. */
function proxy(
  status: object = {},
  { generation = 1, provider = 'a', ...metadata }: Record<string, unknown> = {},
): object {
  const settled = { type: 'Reconciling', status: 'False' };
  return {
    metadata: { uid: 'u1', generation, ...metadata },
    spec: { provider },
    status: {
      phase: 'Ready',
      provider: 'a',
      observedGeneration: generation,
      conditions: [settled],
      ...status,
    },
  };
}
const stalled = { conditions: [{ type: 'Stalled', status: 'True' }] };
const busy = { conditions: [{ type: 'Reconciling', status: 'True' }] };
const edited = { generation: 2 };
const elsewhere = { provider: 'b' };

const told: readonly [string, object][] = [
  ['is Failed', proxy({ phase: 'Failed' })],
  ['has no status yet', { metadata: { uid: 'u1' }, spec: { provider: 'a' } }],
  ['is being deleted', proxy({}, { deletionTimestamp: '2026-11-29T12:00:00Z' })],
  ['is Ready on its old spec, but Stalled for the new one', proxy(stalled, edited)],
  ['is Ready, and waits for the removal of an old VM', proxy(busy)],
  ['is Ready on its old spec, and the new one was not taken in yet', proxy({ observedGeneration: 1 }, edited)], // prettier-ignore
  ['is to leave the provider, where its VM still serves', proxy(busy, { ...edited, ...elsewhere })],
  ['has left the provider, and waits for the removal of a VM', proxy({ ...busy, provider: 'b' }, { ...edited, ...elsewhere })], // prettier-ignore
];
for (const [what, object] of told) {
  test(`a Proxy that ${what} is told`, () => {
    assert.deepEqual(waitingFor('a', [object]), ['u1']);
  });
}

const left: readonly [string, object][] = [
  ['is Ready and settled', proxy()],
  ['is Ready and settled since its last edit', proxy({}, edited)],
  ['waits for another provider, and was never edited', proxy({ phase: 'Failed', provider: null }, elsewhere)], // prettier-ignore
  ['is Ready on another provider, and was edited', proxy({ provider: 'b' }, { ...edited, ...elsewhere })], // prettier-ignore
  ['has no provider', { metadata: { uid: 'u1' }, spec: {}, status: { phase: 'Running' } }],
];
for (const [what, object] of left) {
  test(`a Proxy that ${what} is left alone`, () => {
    assert.deepEqual(waitingFor('a', [object]), []);
  });
}
