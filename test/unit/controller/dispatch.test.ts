import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { Dispatcher } from '../../../controller/dispatch.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeDesk } from '../../support/fakeDesk.ts';
import { recordingLog } from '../../support/recordingLog.ts';

const identity = (uid: string) => ({
  ref: { namespace: 'egress', name: uid, uid },
  provider: 'home',
});
const news = (generation: number, deleting = false) => ({ generation, deleting });

describe('the dispatcher', () => {
  let desk: FakeDesk;
  let dispatcher: Dispatcher;
  const { log, lines } = recordingLog();

  beforeEach(() => {
    desk = new FakeDesk();
    lines.length = 0;
    dispatcher = new Dispatcher({ desk, log, concurrency: 3, retryFirstMs: 10, retryMaxMs: 50 });
  });
  afterEach(() => dispatcher.stop());

  it('makes a bounded number of calls at once, and all of them', async () => {
    for (let n = 0; n < 30; n++) dispatcher.submit({ kind: 'ensure', proxy: identity(`u${n}`) });
    await eventually(() => dispatcher.pending() === 0);
    assert.equal(desk.runs.size, 30);
    assert.equal(desk.mostAtOnce, 3);
  });

  it('tries again until Temporal is back, and says each trouble once', async () => {
    desk.down = true;
    dispatcher.submit({ kind: 'news', proxy: identity('u1'), news: news(2) });
    dispatcher.submit({ kind: 'ensure', proxy: identity('u2') });
    await eventually(() => desk.failures >= 6);
    assert.equal(lines.filter(({ level }) => level === 40).length, 1);
    desk.down = false;
    await eventually(() => dispatcher.pending() === 0);
    assert.deepEqual(desk.runs.get('u1'), [news(2)]);
    assert.deepEqual(desk.runs.get('u2'), []);
  });

  it('tries again at its time also when the wall clock was set back meanwhile', async () => {
    desk.down = true;
    dispatcher.submit({ kind: 'ensure', proxy: identity('u1') });
    await eventually(() => desk.failures >= 1);
    const backThen = Date.now() - 3_600_000;
    mock.timers.enable({ apis: ['Date'], now: backThen });
    try {
      desk.down = false;
      await eventually(() => dispatcher.pending() === 0);
    } finally {
      mock.timers.reset();
    }
    assert.equal(desk.starts, 1);
  });

  it('keeps one place per Proxy: only the newest news is told after an outage', async () => {
    desk.down = true;
    dispatcher.submit({ kind: 'news', proxy: identity('u1'), news: news(2) });
    await eventually(() => desk.failures >= 1);
    dispatcher.submit({ kind: 'news', proxy: identity('u1'), news: news(3) });
    dispatcher.submit({ kind: 'ensure', proxy: identity('u1') });
    assert.ok(dispatcher.pending() <= 2);
    desk.down = false;
    await eventually(() => dispatcher.pending() === 0);
    assert.deepEqual(desk.runs.get('u1')?.at(-1), news(3));
    assert.equal(desk.runs.get('u1')?.length, 1);
  });

  it('starts nothing for an object that is gone', async () => {
    desk.down = true;
    dispatcher.submit({ kind: 'ensure', proxy: identity('u1') });
    await eventually(() => desk.failures >= 1);
    dispatcher.submit({ kind: 'gone', proxy: identity('u1'), news: news(1, true) });
    desk.down = false;
    await eventually(() => dispatcher.pending() === 0);
    assert.equal(desk.starts, 0);
  });

  it('waits for the calls under way when it stops, and begins no other', async () => {
    for (let n = 0; n < 10; n++) dispatcher.submit({ kind: 'ensure', proxy: identity(`u${n}`) });
    await dispatcher.stop();
    assert.equal(desk.underWay, 0);
    assert.equal(desk.runs.size, 3);
  });
});
