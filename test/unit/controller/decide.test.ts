import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finalizer, forceDeleteAnnotation, retryAnnotation } from '../../../api/proxy.ts';
import { decide, stillRemembered } from '../../../controller/decide.ts';
import type { Decision, Remembered } from '../../../controller/decide.ts';
import { aProxy } from '../../support/aProxy.ts';

const deletion = { deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: [finalizer] };
const told: Remembered = { generation: 1, deleting: false, retry: null, forceDelete: null };
const accepted = { phase: 'Ready', observedGeneration: 1 };

interface Row {
  title: string;
  proxy: Parameters<typeof aProxy>[0];
  remembered?: Remembered;
  expected: Decision['kind'];
  news?: { generation: number; deleting: boolean };
}
const rows: Row[] = [
  { title: 'a new Proxy gets a run and no signal', proxy: {}, expected: 'ensure' },
  {
    title: 'a new Proxy is not ensured twice',
    proxy: {},
    remembered: told,
    expected: 'nothing',
  },
  {
    title: 'an accepted generation is nothing, also for a controller that just started',
    proxy: { status: accepted },
    expected: 'nothing',
  },
  {
    title: 'a generation ahead of the status is news',
    proxy: { metadata: { generation: 2 }, status: accepted },
    expected: 'news',
    news: { generation: 2, deleting: false },
  },
  {
    title: 'a generation is told once',
    proxy: { metadata: { generation: 2 }, status: accepted },
    remembered: { ...told, generation: 2 },
    expected: 'nothing',
  },
  {
    title: 'a newer generation is told although the older one is not accepted yet',
    proxy: { metadata: { generation: 3 }, status: accepted },
    remembered: { ...told, generation: 2 },
    expected: 'news',
    news: { generation: 3, deleting: false },
  },
  {
    title: 'a change before the first status is news, for the run may have read the old spec',
    proxy: { metadata: { generation: 2 } },
    remembered: told,
    expected: 'news',
    news: { generation: 2, deleting: false },
  },
  {
    title: 'a change of the status alone is nothing',
    proxy: { status: { ...accepted, phase: 'Running', message: 'm' } },
    remembered: told,
    expected: 'nothing',
  },
  {
    title: 'a deletion is news',
    proxy: { metadata: { ...deletion, generation: 2 }, status: accepted },
    expected: 'news',
    news: { generation: 2, deleting: true },
  },
  {
    title: 'a deletion is news also where its generation is accepted',
    proxy: { metadata: deletion, status: accepted },
    remembered: told,
    expected: 'news',
    news: { generation: 1, deleting: true },
  },
  {
    title: 'a deletion that the status shows as accepted is nothing',
    proxy: { metadata: deletion, status: { ...accepted, phase: 'Deleting' } },
    expected: 'nothing',
  },
  {
    title: 'a deletion is told once',
    proxy: { metadata: deletion, status: accepted },
    remembered: { ...told, deleting: true },
    expected: 'nothing',
  },
  {
    title: 'an object that only waits for the finalizer of somebody else needs no run',
    proxy: { metadata: { ...deletion, finalizers: ['example.org/other'] }, status: accepted },
    expected: 'nothing',
  },
  {
    title: 'a fresh retry annotation is news',
    proxy: { metadata: { annotations: { [retryAnnotation]: 'a' } }, status: accepted },
    remembered: told,
    expected: 'news',
    news: { generation: 1, deleting: false },
  },
  {
    title: 'a handled retry annotation is nothing',
    proxy: {
      metadata: { annotations: { [retryAnnotation]: 'a' } },
      status: { ...accepted, handled: { retry: 'a' } },
    },
    expected: 'nothing',
  },
  {
    title: 'a retry annotation is told once',
    proxy: { metadata: { annotations: { [retryAnnotation]: 'a' } }, status: accepted },
    remembered: { ...told, retry: 'a' },
    expected: 'nothing',
  },
  {
    title: 'another value of a handled annotation is news',
    proxy: {
      metadata: { annotations: { [retryAnnotation]: 'b' } },
      status: { ...accepted, handled: { retry: 'a' } },
    },
    remembered: { ...told, retry: 'a' },
    expected: 'news',
    news: { generation: 1, deleting: false },
  },
  {
    title: 'force-delete set too early is news, so that it is used up before a deletion',
    proxy: { metadata: { annotations: { [forceDeleteAnnotation]: 'a' } }, status: accepted },
    remembered: told,
    expected: 'news',
    news: { generation: 1, deleting: false },
  },
  {
    title: 'force-delete on an object under deletion is news in mid-deletion',
    proxy: {
      metadata: { ...deletion, annotations: { [forceDeleteAnnotation]: 'a' } },
      status: { ...accepted, phase: 'Deleting' },
    },
    remembered: { ...told, deleting: true },
    expected: 'news',
    news: { generation: 1, deleting: true },
  },
  {
    title: 'an External Proxy gets a run as any other',
    proxy: {
      spec: {
        mode: 'External',
        address: '192.0.2.7',
        provider: undefined,
        placement: undefined,
        cloudInit: undefined,
      },
    },
    expected: 'ensure',
  },
];

describe('decide', () => {
  for (const { title, proxy, remembered, expected, news } of rows) {
    it(title, () => {
      const decision = decide(aProxy(proxy), remembered);
      assert.equal(decision.kind, expected);
      assert.deepEqual(decision.kind === 'news' ? decision.news : undefined, news);
    });
  }

  it('takes nothing for told that was told of a later state: etcd was restored', () => {
    const later: Remembered = { ...told, generation: 5 };
    const restored = aProxy({ metadata: { generation: 4 }, status: { ...accepted, observedGeneration: 4 } }); // prettier-ignore
    assert.equal(stillRemembered(restored, later), undefined);
    const sameNumber = aProxy({ metadata: { generation: 5 }, status: accepted });
    assert.equal(stillRemembered(sameNumber, later), later);
    const withdrawn = aProxy({ metadata: { generation: 1 }, status: accepted });
    assert.equal(stillRemembered(withdrawn, { ...told, deleting: true }), undefined);
    assert.equal(stillRemembered(withdrawn, undefined), undefined);
  });

  it('asks for nothing more once what it asked for is remembered', () => {
    for (const { proxy } of rows) {
      const first = decide(aProxy(proxy), undefined);
      if (first.kind === 'nothing') continue;
      assert.equal(decide(aProxy(proxy), first.remember).kind, 'nothing');
    }
  });
});
