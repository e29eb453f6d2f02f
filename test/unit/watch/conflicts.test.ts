import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isNews } from '../../../activities/watch/agents.ts';
import { conflictNews, contestedAddresses, keeperOf } from '../../../activities/watch/conflicts.ts';
import { watchedVms, type WatchedVm } from '../../../activities/watch/watched.ts';
import { aWatchedProxy, uidOf, type WatchedFields } from '../../support/aWatchedProxy.ts';

const ip = '192.0.2.7';
const readySince = (since: string): Record<string, unknown>[] => [
  { type: 'Ready', status: 'True', reason: 'ProbeSucceeded', lastTransitionTime: since },
];

function watched(fields: WatchedFields = {}): WatchedVm {
  const [vm] = watchedVms([aWatchedProxy(1, fields)], 'pve');
  assert.ok(vm);
  return vm;
}

describe('two Proxies with one address', () => {
  it('are found by ip and port, deleted ones left out', () => {
    const proxies = [
      aWatchedProxy(1, { ip }),
      aWatchedProxy(2, { ip }),
      aWatchedProxy(3, { ip, spec: { port: 8080 } }),
      aWatchedProxy(4, { ip, phase: 'Deleting' }),
      aWatchedProxy(5),
    ];
    assert.deepEqual(
      contestedAddresses(proxies).map((group) => group.map(({ metadata }) => metadata.name)),
      [['p1', 'p2']],
    );
  });

  const one = aWatchedProxy(1, { ip, conditions: readySince('2026-11-29T12:00:00Z') });
  const two = aWatchedProxy(2, { ip, conditions: readySince('2026-11-29T11:00:00Z') });
  const three = aWatchedProxy(3, { ip });
  const table: [string, [number, boolean | null][], string][] = [
    [
      'the one whose VM reports it',
      [
        [1, true],
        [2, false],
        [3, null],
      ],
      'p1',
    ],
    [
      'the one that has been Ready longer, when both report it',
      [
        [1, true],
        [2, true],
      ],
      'p2',
    ],
    [
      'the one that has been Ready longest, when nobody tells',
      [
        [1, null],
        [2, null],
      ],
      'p2',
    ],
  ];
  for (const [title, said, keeper] of table) {
    it(`leave it to ${title}`, () => {
      const reports = new Map(said.map(([n, report]) => [uidOf(n), report]));
      assert.equal(keeperOf([one, three, two], reports)?.metadata.name, keeper);
    });
  }

  it('are told when their status does not show it, and when it is over', () => {
    const shown = watched({
      conditions: [{ type: 'Ready', status: 'False', reason: 'AddressConflict' }],
    });
    assert.deepEqual(conflictNews(watched(), 'egress/p2'), { heldBy: 'egress/p2' });
    assert.equal(conflictNews(shown, 'egress/p2'), null);
    assert.deepEqual(conflictNews(shown, null), { heldBy: null });
    assert.equal(conflictNews(watched(), null), null);
  });
});

describe('what an agent says is news', () => {
  const silent = watched({
    conditions: [{ type: 'AgentReachable', status: 'False', reason: 'AgentSilent' }],
  });
  const table: [string, boolean, boolean][] = [
    ['another address', isNews(watched(), { kind: 'address', ip }, false), true],
    ['the same address', isNews(watched(), { kind: 'address', ip: '192.0.2.1' }, false), false],
    [
      'an answer after a silence',
      isNews(silent, { kind: 'address', ip: '192.0.2.1' }, false),
      true,
    ],
    ['a short silence', isNews(watched(), { kind: 'silent' }, false), false],
    ['a long silence', isNews(watched(), { kind: 'silent' }, true), true],
    ['a silence that is shown', isNews(silent, { kind: 'silent' }, true), false],
    ['an agent switched off', isNews(watched(), { kind: 'off' }, false), true],
    ['the agent of another VM', isNews(watched(), { kind: 'anotherVm' }, false), false],
  ];
  for (const [title, news, expected] of table) {
    it(`${title}: ${expected ? 'yes' : 'no'}`, () => assert.equal(news, expected));
  }
});
